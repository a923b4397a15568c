"""KAI's queue arithmetic, without sessions: fair shares, the order of queues, capacity and who may reclaim from whom.

Everything here takes `Figures`: CPU in thousandths, memory in bytes, GPUs in devices. Whoever knows the pods counts them.

GPUs of a pod: the sum of these.

- `nvidia.com/gpu` of its containers; a share of a device (next two) replaces it.
- Annotation `gpu-fraction`, when above 0 and at most 1: rounded to hundredths, times `gpu-fraction-num-devices` (else 1).
  It wins over `gpu-memory`.
- Annotation `gpu-memory` in MiB: a part of a device, rounded up to hundredths, times the number of devices. The device is that
  of the pod's node (label `nvidia.com/gpu.memory`, cut to a multiple of 100); while the pod waits it has 100 MiB.
- `nvidia.com/mig-<N>g.<M>gb`: N for each. A pod with an *annotation* of that name asks for its value times N and nothing else.
- Device claims: the count of every request for a device class with "gpu" in its name, for each pod that names the claim.

What a task holds is counted when it is Allocated, Binding, Bound or Running; what it asks for while it is Pending. A task that
is Gated, Releasing, Pipelined, Succeeded or Failed counts for neither. The cluster has what its ready nodes can allocate, MIG
slices by their N and devices of GPU drivers in resource slices included, less what pods of other schedulers use.
"""
