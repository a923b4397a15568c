// What time it is in the cluster: as it said last, and as much later as has passed here. A moment of a recording stands still.

let said = Date.now() / 1000;
let heard = performance.now();
let stands = false;

export const clock = {
  now() {
    return stands ? said : said + (performance.now() - heard) / 1000;
  },
  set(seconds, isStill) {
    said = seconds;
    heard = performance.now();
    stands = isStill;
  },
};
