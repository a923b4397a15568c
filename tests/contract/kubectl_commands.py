"""Commands as people type them to kubectl, in the order of a working day, and where an embedded cluster differs."""

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: alone, labels: {{app: alone}}}}
spec: {{schedulerName: nobody, containers: [{{name: main, image: train:1, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
"""
MANIFESTS = {
    "settings.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {team: blue}}
data: {colour: red, size: large}
""",
    "settings-2.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {team: blue}}
data: {colour: green}
""",
    "gang.yaml": """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, labels: {app: train, index: "0"}, annotations: {scheduling.k8s.io/group-name: train}}
spec: {schedulerName: nobody, containers: [{name: main, image: train:1, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-1, labels: {app: train, index: "1"}, annotations: {scheduling.k8s.io/group-name: train}}
spec: {schedulerName: nobody, containers: [{name: main, image: train:1, resources: {requests: {cpu: "1"}}}]}
""",
    "other-gang.yaml": "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: other}\nspec: {minMember: 1}\n",
    "typo.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec: {schedulerName: nobody, nodeSelectr: {a: b}, containers: [{name: main, image: train:1}]}
""",
    "broken.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: [}\n",
    "unknown.yaml": "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}\n",
    "deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: nobody, containers: [{name: main, image: web:1}]}
""",
    "pod.yaml": POD.format(cpu=1),
    "pod-2.yaml": POD.format(cpu=2),
    "pod-wrong.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  containers:
  - {name: Main, image: a, resources: {requests: {cpu: "2"}, limits: {cpu: "1"}}}
  - {name: b, image: a}
  - {name: b, image: a}
""",
    "name-wrong.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n",
    "node.yaml": """
apiVersion: v1
kind: Node
metadata: {name: NAMESPACE-n, labels: {pool: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
""",
    "group.yaml": """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: group}
spec: {minMember: 2}
""",
    "vcjob.yaml": """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: vc}
spec:
  schedulerName: nobody
  minAvailable: 1
  tasks: [{name: w, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: train:1}]}}}]
""",
    "set.yaml": """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: set-a, labels: {set: s}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: set-b, labels: {set: s}}}
""",
    "set-less.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: set-a, labels: {set: s}}\n",
    "kustomization.yaml": "resources: [set-less.yaml]\nnamePrefix: made-\n",
    "note.yaml": "metadata: {annotations: {note: from a file}}\n",
}
"""Files that the commands name."""

COMMANDS = """
version
api-versions
api-resources --namespaced=false -o name
cluster-info
get --raw /healthz
get --raw /version
auth can-i create pods
auth can-i '*' '*'
auth whoami
get namespaces
get ns default -o name
get configmaps
create configmap made --from-literal=a=b
create configmap made --from-literal=a=b
create configmap dry --from-literal=a=b --dry-run=client -o yaml
create configmap dry --from-literal=a=b --dry-run=server
get configmap dry
create secret generic password --from-literal=word=secret
get secret password -o jsonpath={.data.word}
create quota small --hard=pods=100
create priorityclass NAMESPACE-high --value=1000 --description=high
get priorityclass NAMESPACE-high
create pdb budget --selector=app=train --min-available=1
get pdb
create job once --image=train:1 --dry-run=server
create cronjob nightly --image=train:1 --schedule='0 3 * * *'
get cronjobs
apply -f settings.yaml
apply -f settings.yaml
diff -f settings.yaml
diff -f settings-2.yaml
apply -f settings-2.yaml
get configmap settings -o jsonpath={.data}
get configmap settings --show-labels
get configmap settings -o custom-columns=N:.metadata.name,C:.data.colour
get configmap settings -o go-template={{.data.colour}}
get configmap settings -o name
get configmap settings nothere
get configmap nothere --ignore-not-found
label configmap settings size=large
label configmap settings size=small
label configmap settings size=small --overwrite
label configmap settings size-
annotate configmap settings note=hello
get configmap -l team=blue
get configmap -l 'team in (blue,red),!size'
get configmap -l team=
get configmap --field-selector metadata.name=settings
get configmap --field-selector spec.nothing=a
patch configmap settings -p '{"data":{"size":"tiny"}}'
patch configmap settings --type=merge -p '{"data":{"size":null}}'
patch configmap settings --type=json -p '[{"op":"replace","path":"/data/colour","value":"blue"}]'
patch configmap settings --type=json -p '[{"op":"test","path":"/data/colour","value":"red"}]'
apply --server-side -f settings.yaml
apply --server-side --force-conflicts -f settings.yaml
apply --server-side --field-manager=other -f settings-2.yaml
get configmap settings --show-managed-fields -o jsonpath={.metadata.managedFields[*].operation}
replace -f settings.yaml
create -f settings.yaml
apply -f typo.yaml
apply -f typo.yaml --validate=warn --dry-run=server
apply -f broken.yaml
apply -f unknown.yaml
apply -f nothere.yaml
explain pods
explain pods.spec.containers.resources
explain pods.spec.nothing
explain podgroups.spec --api-version=scheduling.volcano.sh/v1beta1
explain jobs.spec.template
apply -f gang.yaml
get podgroups.scheduling.volcano.sh
get podgroups.scheduling.volcano.sh train -o jsonpath={.spec.minMember}
get pods
get pods -o wide
get pods --sort-by=.metadata.name
get pods --sort-by=.spec.schedulerName
get pods --sort-by=.status.phase --no-headers
get pods --field-selector status.phase=Pending
get pods --field-selector spec.nodeName=
get pods -l app=train -o name
get pod train-0 -o jsonpath={.spec.schedulerName}
get pods train-0 train-1 -o name
get pods -A -l app=train --no-headers -o custom-columns=N:.metadata.name
get pods,configmaps -l app=train
get all
describe pod train-0
describe podgroups.scheduling.volcano.sh train
wait --for=jsonpath={.status.phase}=Pending pod/train-0 --timeout=5s
wait --for=condition=Ready pod/train-0 --timeout=1s
wait --for=delete pod/nothere --timeout=1s
logs nothere
get events
events
apply -f deployment.yaml
get deployments
scale deployment web --replicas=0
get deployment web -o jsonpath={.spec.replicas}
scale deployment web --current-replicas=5 --replicas=1
set image deployment/web main=web:2
get deployment web -o jsonpath={.spec.template.spec.containers[0].image}
rollout pause deployment/web
delete deployment web
run single --image=train:1 --overrides={"spec":{"schedulerName":"nobody"}}
get pod single -o jsonpath={.spec.containers[0].image}
delete pod single --grace-period=0 --force
delete pod nothere
delete pod nothere --ignore-not-found
delete -f gang.yaml --wait=false
delete configmap settings made
delete configmap --all
get nothing
get pods --request-timeout=soon
delete priorityclass NAMESPACE-high
apply -f pod.yaml
get pod alone -o jsonpath={.spec.tolerations}
get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\\t"}{.status.phase}{"\\n"}{end}'
get pods -o jsonpath-as-json={.items[*].metadata.name}
get pods -o go-template='{{range .items}}{{.metadata.name}} {{.spec.schedulerName}}{{end}}'
get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,CPU:.spec.containers[*].resources.requests.cpu
get pods --chunk-size=1 -o name
get pods --watch --request-timeout=1s
get pods --show-kind -L app
get pods -l 'app!=alone'
get pods -l 'app in (alone'
get pods -l 'app notin(other),app'
get pods --field-selector=spec.schedulerName=nobody,status.phase!=Running -o name
get pods --field-selector=bad
get pod/alone configmap/nothere
label pod alone tier=gold
label pods --all tier=silver --overwrite
label pod alone 'no key=1'
label pod alone tier='no value'
label -f pod.yaml checked=yes
annotate pod alone note='a b c'
annotate pods -l app=alone note-
patch pod alone --patch-file=note.yaml
patch pod alone --type=json -p '[{"op":"add","path":"/metadata/labels/added","value":"json"}]'
patch pod alone --subresource=status --type=merge -p '{"status":{"message":"hello"}}'
patch pod alone -p '{"metadata":{"name":"other"}}'
patch pod alone -p '{"spec":{"schedulerName":"other"}}'
apply -f pod-2.yaml
replace --force -f pod-2.yaml --grace-period=0
get pod alone -o jsonpath={.spec.containers[0].resources.requests.cpu}
set image pod/alone main=train:3
set env pod/alone --list
create -f pod-wrong.yaml
create -f name-wrong.yaml
create namespace Not_A_Name
logs alone
logs alone -c nothere
logs -l app=alone
exec alone -- ls
port-forward pod/alone 8080:80
attach alone
debug alone --image=busybox -q
top pods
expose pod alone --port=80 --name=exposed
get service exposed -o jsonpath={.spec.ports[0].port}
delete service exposed
wait --for=create pod/alone --timeout=2s
wait --for=condition=PodScheduled=False pod/alone --timeout=1s
rollout status deployment/nothere
rollout history deployment/nothere
autoscale deployment nothere --max=3
delete pod alone --cascade=foreground --now
create role reader --verb=get --resource=pods --dry-run=client -o name
create service clusterip front --tcp=80:80
create secret docker-registry registry --docker-server=a --docker-username=b --docker-password=c
create cronjob wrong --image=train:1 --schedule=bad
create poddisruptionbudget other --selector=app=x --max-unavailable=1
create deployment made --image=web:1 --replicas=0 --dry-run=client -o name
apply -f group.yaml
get pg group
label podgroups.scheduling.volcano.sh group tier=gold
annotate pg.scheduling.volcano.sh group note=hello
patch podgroups.scheduling.volcano.sh group --type=merge -p '{"spec":{"minMember":"many"}}'
patch podgroups.scheduling.volcano.sh group --type=json -p '[{"op":"replace","path":"/spec/minMember","value":3}]'
patch podgroups.scheduling.volcano.sh group -p '{"spec":{"minMember":3}}'
scale podgroups.scheduling.volcano.sh group --replicas=2
explain podgroups.spec --api-version=scheduling.volcano.sh/v1beta1 --recursive
explain pods.spec.tolerations --recursive
delete podgroups.scheduling.volcano.sh --all
apply -f vcjob.yaml
get vcjob vc -o jsonpath={.spec.queue}
label vcjob vc a=b
patch vcjob vc --type=merge -p '{"spec":{"minAvailable":1}}'
delete vcjob vc
create -f node.yaml
get node NAMESPACE-n
cordon NAMESPACE-n
get node NAMESPACE-n -o jsonpath={.spec.unschedulable}
uncordon NAMESPACE-n
taint node NAMESPACE-n dedicated=gangs:NoSchedule
taint node NAMESPACE-n dedicated=gangs:NoSchedule
taint node NAMESPACE-n dedicated=others:NoSchedule --overwrite
taint node NAMESPACE-n dedicated-
taint node NAMESPACE-n a=b:Nonsense
drain NAMESPACE-n --ignore-daemonsets --delete-emptydir-data
drain nothere
top node NAMESPACE-n
delete node NAMESPACE-n
auth can-i create podgroups.scheduling.volcano.sh
auth can-i get pods -q
auth can-i create deployments --as=nobody
api-resources --api-group=scheduling.volcano.sh
api-resources --api-group=policy --verbs=list,create -o name
api-resources --api-group=nothing
apply -f set.yaml
apply -f set-less.yaml --prune -l set=s --prune-allowlist=core/v1/ConfigMap
get configmap -l set=s -o name
get -f set-less.yaml
apply -k .
delete -k .
delete configmap -l set=s
get namespaces NAMESPACE -o jsonpath={.status.phase}
get events --field-selector=type=Normal,reason=Nothing
get pvc,pv,sc
""".strip().splitlines()

OUTPUT_DIFFERS = {
    "version": "the embedded cluster has a version of its own",
    "api-versions": "the embedded cluster serves the kinds that scheduling needs",
    "api-resources --namespaced=false -o name": "as above",
    "get --raw /version": "as the version",
    "auth whoami": "everybody is one user",
    "get namespaces": "the namespaces of other tests",
    "get configmaps": "no certificates are handed out",
    "delete configmap --all": "as above",
    "create job once --image=train:1 --dry-run=server": "a warning that nobody makes the pods",
    "create cronjob nightly --image=train:1 --schedule='0 3 * * *'": "as above",
    "apply -f deployment.yaml": "as above",
    "get configmap --field-selector spec.nothing=a": "the fields that there are are named in other words",
    "apply -f typo.yaml --validate=warn --dry-run=server": "a hint at what was meant",
    "get events": "nobody runs controllers that report",
    "events": "as above",
    "describe pod train-0": "no service accounts, so no volume with a token",
    "describe podgroups.scheduling.volcano.sh train": "our controllers write a status",
    "diff -f settings-2.yaml": "paths of temporary files",
    "get pods --field-selector=bad": "another example of what can be written",
    'patch pod alone -p \'{"spec":{"schedulerName":"other"}}\'': "the differences are not shown",
    "apply -f pod-2.yaml": "as above",
    "get pods -l 'app in (alone'": "another example of what can be written",
    "create cronjob wrong --image=train:1 --schedule=bad": "another example of what can be written",
    "top pods": "the usage of nodes is served, and none of pods",
    "top node NAMESPACE-n": "as above",
    "scale podgroups.scheduling.volcano.sh group --replicas=2": "another name for what is not there",
    "explain pods": "no descriptions",
    "explain pods.spec.containers.resources": "no descriptions",
    "explain jobs.spec.template": "no descriptions",
    "explain pods.spec.tolerations --recursive": "no descriptions",
    "get pvc,pv,sc": "other classes of other tests",
}
"""Commands whose output differs although they end alike, and why; that of all others is equal."""
END_DIFFERS = {
    "debug alone --image=busybox -q": "no containers run, so none can be added",
    "auth can-i create deployments --as=nobody": "everybody may do everything",
}
"""Commands that end in another way, and why."""
