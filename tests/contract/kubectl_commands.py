"""A hundred commands as people type them to kubectl, in the order of a working day, and where an embedded cluster differs."""

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
    "explain pods": "no descriptions",
    "explain pods.spec.containers.resources": "no descriptions",
    "explain jobs.spec.template": "no descriptions",
}
"""Commands whose output differs although they end alike, and why; that of all others is equal."""
