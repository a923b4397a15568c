"""The codes of conditions and events: on what they are, and what they mean."""

CONDITIONS = (
    (
        "BelowMinimum",
        "any PodGroup, `Stale`",
        "The gang runs with fewer members than it needs, since the time of the condition.",
    ),
    (
        "GangIsWhole",
        "PodGroups of Coscheduling and Koordinator, in answers",
        "Enough members have a node; the gang starts.",
    ),
    (
        "Invalid",
        "any PodGroup, `Refused` or `Quarantined`",
        "The group, or a part of it, is invalid; the message says where. Other groups are not affected.",
    ),
    (
        "InvalidMembers",
        "HyperNode, `Misconfigured`",
        "Members do not exist, contain each other in a circle, are in two HyperNodes, or have a tier that is not lower; "
        "the message says what to write. The rest of the HyperNode is used.",
    ),
    (
        "LongerThanMaximum",
        "any PodGroup, `Overdue`",
        "The gang runs longer than it may; the message says how long that is, and where it comes from. It is left running "
        "unless its queue says otherwise.",
    ),
    (
        "Misconfigured",
        "pod, `PodScheduled`",
        "What the pod says about its gang is invalid, it names two groups, or its PodGroup does not exist 10 seconds "
        "after its creation. Only this pod is quarantined; the message says what to write.",
    ),
    (
        "NodesRequested",
        "pod",
        "Its gang lacks nodes, and a [ProvisioningRequest](../howto/autoscalers.md#ask-for-all-nodes-of-a-gang-at-once) asks "
        "for them.",
    ),
    (
        "NotEnoughMembers",
        "PodGroups of Coscheduling and Koordinator, in answers",
        "Not enough members have a node; the message counts them and names the first cause.",
    ),
    (
        "NotEnoughPods",
        "any PodGroup, `Quarantined`",
        "Fewer pods exist than the gang needs; the message counts them. Gangs without a group object have it on their pods.",
    ),
    (
        "NotEnoughResources",
        "Volcano's PodGroup, YuniKorn's application, Kueue's pod group; `Unschedulable`",
        "Not enough members have a node; the message counts them and names the first cause.",
    ),
    (
        "NotReady",
        "KAI's PodGroup",
        "Pods that the job needs do not exist yet, or are gated.",
    ),
    (
        "Pipelined",
        "KAI's pods",
        "The pod is pipelined: other pods still hold its resources.",
    ),
    (
        "PodSchedulingErrors",
        "KAI's PodGroup",
        "Nodes were found for too few pods.",
    ),
    (
        "QueueDoesNotExist",
        "KAI's PodGroup",
        "The group names a queue that does not exist.",
    ),
    (
        "QueueNotFound",
        "any PodGroup, `Quarantined`",
        "The gang names a queue that does not exist; the message says where to change it. Gangs without a group object "
        "have it on their pods.",
    ),
    (
        "ResourceReservationTimeout",
        "YuniKorn's application, `GangDegraded`; its pods as the reason of their failure",
        "The whole application did not fit before its timeout.",
    ),
    (
        "Schedulable",
        "pod",
        "It has a node as soon as its gang has its minimum.",
    ),
    (
        "Scheduled",
        "PodGroup of Kubernetes",
        "As many pods as the gang needs have had a node.",
    ),
    (
        "SchedulerFault",
        "any PodGroup, `Quarantined`",
        "The scheduler itself failed on this gang; please report it. Other gangs are not affected.",
    ),
    (
        "Undetermined",
        "pod",
        "It has no node, and more nodes would not help: the message says what it waits for. Autoscalers do not act on it.",
    ),
    (
        "Unschedulable",
        "pod",
        "Its gang lacks nodes; [autoscalers](../howto/autoscalers.md) bring some because of it. All pods of the gang that wait "
        "have it, also those for which there is room.",
    ),
    (
        "Unschedulable",
        "PodGroup of Kubernetes",
        "The gang waits.",
    ),
)
"""In the wording of the dialect of the group."""

EVENTS = (
    (
        "Admitted",
        "Kueue's pods",
        "The whole group fits; the gate was removed.",
    ),
    (
        "BindingError",
        "pod",
        "A bind failed, or was rolled back because another pod of the gang could not be bound.",
    ),
    (
        "Created",
        "JobFlow",
        "The Job of a step was created.",
    ),
    (
        "Evict",
        "KAI's PodGroup",
        "Pods of the group are evicted; the message says for which gang and by which action.",
    ),
    (
        "ExecuteAction",
        "Volcano's Job",
        "A policy or a command triggers an action on the Job; the message says which and why.",
    ),
    (
        "FailedCreate",
        "owner of an object that a controller creates, such as a Job",
        "The API server rejects the object; the message says why, and creation is retried.",
    ),
    (
        "FailedScheduling",
        "PodGroup",
        "The gang waits for a new reason.",
    ),
    (
        "GangDegraded",
        "YuniKorn's originator",
        "The application waited too long and is no longer a gang.",
    ),
    (
        "GangTimedOut",
        "pod with the gate `phalanx.dev/gang`",
        "The gang did not get its minimum before its timeout, and its pods are deleted.",
    ),
    (
        "Invalid",
        "any object of a controller",
        "The object is left as it is until it is corrected; the message says where.",
    ),
    (
        "InvalidCommand",
        "Queue, Command",
        "The command is unknown, or not possible for this queue.",
    ),
    (
        "Misconfigured",
        "pod, any PodGroup, HyperNode",
        "It is invalid; the message says what to write. Pods and PodGroups are quarantined, of a HyperNode the rest is used.",
    ),
    (
        "NoEffect",
        "PodGroup",
        "A hard network constraint, a policy of sub-groups or a minimum beside sub-groups has no effect; the message "
        "says why and what to write.",
    ),
    (
        "NoPodController",
        "Job, PyTorchJob and other owners",
        "In an embedded cluster (`phalanx up`, `phalanx simulate`) no controller creates the pods of this kind.",
    ),
    (
        "NotReady",
        "KAI's PodGroup",
        "Pods that the job needs do not exist yet, or are gated.",
    ),
    (
        "Overdue",
        "any PodGroup, a pod of a gang without a group object",
        "The gang has run as long as it may, and still runs.",
    ),
    (
        "Pipelined",
        "KAI's pods",
        "The pod is pipelined: other pods still hold its resources.",
    ),
    (
        "PlaceholdersReleased",
        "YuniKorn's originator",
        "Pods for which placeholders held resources were not created in time; the resources are released.",
    ),
    (
        "PlanFailed",
        "pod with the gate `phalanx.dev/gang`",
        "Its node disappeared before it was placed; it is created again.",
    ),
    (
        "PodGrouperWarning",
        "owner of pods, or a pod",
        "What it says about its gang is invalid; the message says where.",
    ),
    (
        "Preempted",
        "pod",
        "The pod is evicted; the message says for which gang and by which action.",
    ),
    (
        "ProvisioningFailed",
        "any PodGroup, or a pod of a gang without a group object",
        "Nothing comes of a ProvisioningRequest of the gang; the message says why and when the next one is made. See "
        "[autoscalers](../howto/autoscalers.md#ask-for-all-nodes-of-a-gang-at-once).",
    ),
    (
        "ProvisioningNotRequested",
        "any PodGroup, or a pod of a gang without a group object",
        "The gang lacks nodes, and no ProvisioningRequest can ask for them; the message says why. Nodes come for each of its pods.",
    ),
    (
        "ProvisioningRequested",
        "any PodGroup, or a pod of a gang without a group object",
        "Nodes for the whole gang are asked for by a ProvisioningRequest.",
    ),
    (
        "Quarantined",
        "any PodGroup, pods of a gang without a group object",
        "The gang is quarantined until its queue exists, its pods exist, or it is corrected.",
    ),
    (
        "Refused",
        "Volcano's Job",
        "The Job is invalid, and nothing is created for it.",
    ),
    (
        "ReservationGone",
        "pod on a shared GPU",
        "The pod that reserved the GPU is gone, so this one is deleted; see [shared GPUs](shared-gpus.md).",
    ),
    (
        "ResourceReservationTimeout",
        "YuniKorn's originator",
        "The application waited too long, and its pods failed.",
    ),
    (
        "ScheduleTimeout",
        "PodGroups of Coscheduling and Koordinator",
        "The gang did not get its minimum before its timeout; nothing is kept for it.",
    ),
    (
        "Scheduled",
        "pod; PodGroups of Coscheduling and Koordinator",
        "The pod was bound; the gang starts.",
    ),
    (
        "StaleJob",
        "KAI's PodGroup",
        "The job was below its minimum for too long.",
    ),
    (
        "SuccessfulCreate",
        "CronJob",
        "A Job was created by the schedule.",
    ),
    (
        "Unschedulable",
        "KAI's PodGroup and pods",
        "It does not fit on any node.",
    ),
)
"""About what they are."""
