// The views, in the order of the menu; those without a title in it are reached from others.

import { gangView } from "./views/gang.js";
import { gangsView } from "./views/gangs.js";
import { nodesView } from "./views/nodes.js";
import { overviewView } from "./views/overview.js";
import { queuesView } from "./views/queues.js";
import { sessionView, sessionsView } from "./views/sessions.js";
import { simulationsView } from "./views/simulations.js";
import { whatIfView } from "./views/what_if.js";
import { worldsView } from "./views/worlds.js";

const hasCluster = (about) => about.hasCluster || about.hasRecording;

export const VIEWS = [
  { name: "overview", title: "Overview", isThere: hasCluster, start: overviewView },
  { name: "queues", title: "Queues", isThere: hasCluster, start: queuesView },
  { name: "gangs", title: "Gangs", isThere: hasCluster, start: gangsView },
  { name: "nodes", title: "Nodes", isThere: hasCluster, start: nodesView },
  { name: "sessions", title: "Sessions", isThere: hasCluster, start: sessionsView },
  { name: "what-if", title: "What if", isThere: hasCluster, start: whatIfView },
  { name: "worlds", title: "Both worlds", isThere: (about) => about.questions.includes("worlds"), start: worldsView },
  { name: "simulations", title: "Simulations", isThere: (about) => about.hasSimulations, start: simulationsView },
  { name: "gang", title: "Gang", under: "gangs", isHidden: true, isThere: hasCluster, start: gangView },
  { name: "session", title: "Session", under: "sessions", isHidden: true, isThere: hasCluster, start: sessionView },
];
