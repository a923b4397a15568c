"""The codes of evictions that do not happen: why nobody is evicted for a gang, and what protects a running one."""

EVICTIONS = (
    (
        "Cooldown", "`cdp`", "The running pod is in its cooldown time (`volcano.sh/cooldown-time`).",
        "Wait, or shorten the time.", "is in its cooldown time",
    ),
    (
        "DisruptionBudget", "`pdb`", "A PodDisruptionBudget allows too few disruptions.",
        "Change the budget; a gang that goes as a whole needs as many disruptions as it has pods.",
        "is protected by PodDisruptionBudget ml/keep, which allows 0 disruptions",
    ),
    (
        "GangWouldBreak", "`gang`, actions that evict", "The running gang would fall below its minimum.",
        "Lower its `minMember`, or use `gangpreempt`, which can evict all of it.", "would fall below its minimum of 3",
    ),
    (
        "MinimumRuntime", "`reclaim`, `preempt` of kai", "The running job has not run for its minimum runtime.",
        "Wait, or shorten the minimum runtime of its queue.", "has not run for its minimum runtime",
    ),
    (
        "NoLabels", "`pdb`", "The running pod has no labels, and such pods are spared (`pdb.spareUnlabelled`).",
        "Give the pod a label, or switch the setting off.", "has no labels",
    ),
    (
        "NoNodeSuits", "actions that evict", "No node passes the filters that evictions cannot change, whoever leaves.",
        "Change what the filter asks for: a selector, a toleration, a volume.", "no node suits it, whoever leaves",
    ),
    (
        "NobodyRuns", "actions that evict", "No pods run that could be evicted.", "Wait for free resources, or add nodes.",
        "nobody runs who could go",
    ),
    (
        "NominatedBefore", "`preempt`", "The pod waits for its nominated node; nobody else is evicted for it.",
        "Wait until the victims have left that node.", "",
    ),
    (
        "NotLowerPriority", "`priority`, actions that evict", "The running gang does not have a lower priority.",
        "Give the waiting gang a higher priority than the running one; equal ones are not evicted.",
        "has priority 1000, not lower than 1000",
    ),
    (
        "NotPreemptable", "actions that evict", "The running gang or pod is marked as not preemptable.",
        "Change the annotation or label that says so.", "is not preemptable",
    ),
    (
        "NotRunning", "actions that evict", "The pod is bound and does not run yet.", "Wait until it runs.", "does not run yet",
    ),
    (
        "NothingInCommon", "`capacity`", "The running pod holds nothing of what the gang requests.",
        "Nothing: its eviction would not help.", "",
    ),
    (
        "OtherQueue", "`preempt`, `gangpreempt`", "The running gang is in another queue; these actions evict inside a queue.",
        "Nothing: `reclaim` and `gangreclaim` evict in other queues.", "is in another queue",
    ),
    (
        "PreemptionNever", "actions that evict", "The `preemptionPolicy` of the pod is Never.",
        "Change the `preemptionPolicy` of its pods, or of its PriorityClass.", "its preemptionPolicy is Never",
    ),
    (
        "Protected", "any plugin", "A plugin that gives no reason protects the running pod.",
        "See the documentation of the plugin.", "",
    ),
    (
        "QueueNotReclaimable", "`reclaim`, `gangreclaim`", "The queue of the running gang has `reclaimable: false`.",
        "Change `reclaimable` of that queue.", "is in queue dev, which is not reclaimable",
    ),
    (
        "QueueWithinShare", "`capacity`, `proportion`",
        "The queue of the running gang has no more than it deserves, or would have less.",
        "Change the shares of the two queues.", "is in queue dev, which has 2 of the 4 nvidia.com/gpu that it deserves",
    ),
    (
        "SameQueue", "`reclaim`, `gangreclaim`", "The running gang is in the same queue; these actions evict in other queues.",
        "Nothing: `preempt` and `gangpreempt` evict inside a queue.", "is in the same queue",
    ),
    (
        "SmallerShare", "`drf`", "The running gang would keep a smaller share of the cluster than the preemptor would have.",
        "Switch off `enablePreemptable` of `drf`.", "would keep 10% of the cluster, less than the 50% of the preemptor",
    ),
    (
        "StillNoRoom", "actions that evict", "Too few nodes would have room even if all pods left that may be evicted.",
        "Lower the requests or the minimum of the gang, or add nodes.",
        "too few nodes have room for it even without those that may go",
    ),
    (
        "SystemPod", "`conformance`", "The running pod is in `kube-system` or has a class for system pods.",
        "Nothing: such pods are left alone.", "belongs to the system",
    ),
    (
        "TimeDivision", "`tdm`", "The running pod is on a revocable node, or the preemptor is preemptable or revocable itself.",
        "Make the waiting gang neither preemptable nor revocable.", "",
    ),
)  # fmt: skip
"""Code, who gives it, cause, what helps, and an example of the sentence."""
