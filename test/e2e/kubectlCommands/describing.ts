/** describe, of every kind that a default server lists: an object of each, and the lines that kubectl prints about it. */
import assert from 'node:assert/strict'
import { describedObjects } from './describedObjects.ts'
import { type Custom, type Family, fails, says } from './steps.ts'

const namespace = 'describing'

/** Resource and name, the wanted output, and the first kubectl version with that output. */
const described: readonly [what: string, want: readonly RegExp[], since?: number][] = [
  ['componentstatuses etcd-0', [/Name: +etcd-0/, /Type: +Healthy/]],
  ['configmaps settings', [/Name: +settings\n/, /Data\n====\na:\n----\n1\n/]],
  ['endpoints web', [/Subsets:/]],
  ['events', [/Reason: +Scheduled/]],
  ['limitranges limits', [/Type +Resource +Min +Max +Default Request +Default Limit +Max Limit\/Request Ratio\n/, /Container +cpu +- +2 +100m +1 +-/]],
  ['namespaces describing-quota', [/Status: +Active/, /Resource Quotas\n +Name: +quota\n/]],
  ['nodes e2e-commands-sim-1', [/Ready +True +\S.* KubeletReady/, /Allocatable:\n/, /Non-terminated Pods:/, /Allocated resources:/, /PodCIDR: +10\.244\./]],
  ['persistentvolumeclaims claim', [/Status: +Pending/, /Access Modes:/, /Used By: +<none>/], 20],
  ['persistentvolumes describing-volume', [/Reclaim Policy: +Retain/, /Capacity: +1Gi/, /Type: +HostPath/, /Node Affinity: +<none>/]],
  [
    'pods single',
    [
      /Node: +e2e-commands-sim-\d\//,
      /Status: +Running/,
      /QoS Class: +Burstable/,
      /Limits:\n +cpu: +1\n +memory: +64Mi/,
      /Events:\n(.|\n)*Scheduled(.|\n)*Started/,
    ],
  ],
  ['podtemplates template', [/Name: +template/]],
  ['replicationcontrollers old', [/Selector: +app=old/, /Replicas: +\d current \/ 1 desired/]],
  ['resourcequotas quota -n describing-quota', [/Resource +Used +Hard\n/]],
  ['secrets word', [/Type: +Opaque/, /password: +6 bytes/]],
  ['serviceaccounts robot', [/Image pull secrets: +<none>/]],
  ['services web', [/Type: +ClusterIP/, /IP: +10\.96\./, /Port: +<unset> +80\/TCP/, /Selector: +app=web/, /Session Affinity: +None/]],
  ['mutatingadmissionpolicies.admissionregistration.k8s.io describing.example', [/Kind: +MutatingAdmissionPolicy/]],
  ['mutatingadmissionpolicybindings.admissionregistration.k8s.io describing.example', [/Kind: +MutatingAdmissionPolicyBinding/]],
  ['mutatingwebhookconfigurations.admissionregistration.k8s.io describing.example', [/Kind: +MutatingWebhookConfiguration/, /Failure Policy: +Ignore/]],
  ['validatingadmissionpolicies.admissionregistration.k8s.io describing.example', [/Kind: +ValidatingAdmissionPolicy/]],
  ['validatingadmissionpolicybindings.admissionregistration.k8s.io describing.example', [/Kind: +ValidatingAdmissionPolicyBinding/]],
  ['validatingwebhookconfigurations.admissionregistration.k8s.io describing.example', [/Kind: +ValidatingWebhookConfiguration/, /Side Effects: +None/]],
  ['customresourcedefinitions.apiextensions.k8s.io things.describing.example', [/Type: +Established/, /Accepted Names:/]],
  ['apiservices.apiregistration.k8s.io v1.apps', [/Group: +apps/, /Type: +Available/]],
  ['controllerrevisions.apps -l app=agent', [/Revision: +1/]],
  ['daemonsets.apps agent', [/Selector: +app=agent/, /Desired Number of Nodes Scheduled: 3/, /SuccessfulCreate/]],
  [
    'deployments.apps web',
    [
      /Replicas: +1 desired \| 1 updated \| 1 total \| 1 available \| 0 unavailable/,
      /StrategyType: +RollingUpdate/,
      /NewReplicaSet: +web-\w+ \(1\/1 replicas created\)/,
      /ScalingReplicaSet/,
    ],
  ],
  ['replicasets.apps -l app=web', [/Controlled By: +Deployment\/web/, /Pods Status: +1 Running \/ 0 Waiting \/ 0 Succeeded \/ 0 Failed/]],
  ['statefulsets.apps store', [/Replicas: +1 desired \| 1 total/, /Update Strategy: +RollingUpdate/]],
  ['horizontalpodautoscalers.autoscaling web', [/Reference: +Deployment\/web/, /Min replicas: +1/]],
  ['cronjobs.batch tick', [/Schedule: +0 0 1 1 \*/, /Concurrency Policy: +Allow/, /Suspend: +False/], 21],
  ['jobs.batch once', [/Parallelism: +1/, /Pods Statuses: /]],
  ['certificatesigningrequests.certificates.k8s.io describing', [/Signer: +example\.com\/none/, /Status: +Pending/]],
  ['leases.coordination.k8s.io e2e-commands-sim-1 -n kube-node-lease', [/Holder Identity: +e2e-commands-sim-1/]],
  ['endpointslices.discovery.k8s.io -l kubernetes.io/service-name=web', [/AddressType: +IPv4/, /TargetRef: +Pod\/web-/], 21],
  ['events.events.k8s.io', [/Reason: +Scheduled/]],
  ['flowschemas.flowcontrol.apiserver.k8s.io describing', [/Matching Precedence: +9000/], 20],
  ['prioritylevelconfigurations.flowcontrol.apiserver.k8s.io describing', [/Nominal Concurrency Shares: +5/], 20],
  ['ingressclasses.networking.k8s.io describing', [/Controller: +example\.com\/ingress/], 21],
  ['ingresses.networking.k8s.io shop', [/Ingress Class: +describing/, /shop\.example/, /web:80/], 22],
  ['ipaddresses.networking.k8s.io 10.96.0.1', [/Name: +10\.96\.0\.1/], 33],
  ['networkpolicies.networking.k8s.io closed', [/PodSelector: +app=web/, /Allowing ingress traffic:\n +To Port: 80\/TCP/, /Policy Types: Ingress/]],
  ['servicecidrs.networking.k8s.io kubernetes', [/CIDRs: +10\.96\.0\.0\/16/], 33],
  ['runtimeclasses.node.k8s.io describing', [/Handler: +special/]],
  ['poddisruptionbudgets.policy least', [/Min available: +1/, /Selector: +app=web/, /Allowed disruptions: +0/], 21],
  ['clusterrolebindings.rbac.authorization.k8s.io cluster-admin', [/Kind: +ClusterRole/, /Group +system:masters/]],
  [
    'clusterroles.rbac.authorization.k8s.io view',
    [/PolicyRule:\n +Resources +Non-Resource URLs +Resource Names +Verbs\n/, /pods +\[\] +\[\] +\[get list watch\]/],
  ],
  ['rolebindings.rbac.authorization.k8s.io one', [/Kind: +Role\n +Name: +one/, /User +jane/]],
  ['roles.rbac.authorization.k8s.io one', [/pods +\[\] +\[\] +\[get\]/]],
  ['deviceclasses.resource.k8s.io describing.example', [/Name: +describing\.example/]],
  ['resourceclaims.resource.k8s.io claim', [/Device Class Name: +describing\.example/]],
  ['resourceclaimtemplates.resource.k8s.io template', [/Device Class Name: +describing\.example/]],
  ['resourceslices.resource.k8s.io describing', [/Driver: +describing\.example/, /Resource Slice Count: +1/]],
  ['priorityclasses.scheduling.k8s.io system-node-critical', [/Value: +2000001000/, /GlobalDefault: +false/]],
  ['csidrivers.storage.k8s.io describing.example', [/Attach Required: +true/]],
  ['csinodes.storage.k8s.io describing', [/Name: +describing/]],
  ['csistoragecapacities.storage.k8s.io capacity', [/Storage Class Name: +describing/]],
  ['storageclasses.storage.k8s.io describing', [/Provisioner: +example\.com\/none/, /ReclaimPolicy: +Delete/, /VolumeBindingMode: +WaitForFirstConsumer/]],
  ['volumeattachments.storage.k8s.io describing', [/Attacher: +describing\.example/]],
  ['nodes.metrics.k8s.io e2e-commands-sim-1', [/Kind: +NodeMetrics/, /Usage:\n +Cpu: +\S+\n +Memory: +\S+/, /Window: +\d/]],
  ['pods.metrics.k8s.io one -n reading', [/Kind: +PodMetrics/, /Containers:\n +Name: +main\n +Usage:/]],
  ['podworkers.node.skiff.dev e2e-commands-sim-1', [/Kind: +PodWorkers/, /Stage: +syncing/]],
  ['servicerules.node.skiff.dev e2e-commands-sim-1', [/Kind: +ServiceRules/, /Note: +name a Service/]],
  ['noderoutes.node.skiff.dev e2e-commands-sim-1', [/Kind: +NodeRoutes/, /Note: +a simulated node has no network/]],
  ['networkprobes.node.skiff.dev e2e-commands-sim-1', [/Kind: +NetworkProbes/, /Note: +a simulated node has no network/]],
  ['nodecalls.node.skiff.dev e2e-commands-sim-1', [/Kind: +NodeCalls/, /Note: +\S/]],
  ['podtraces.node.skiff.dev e2e-commands-sim-1', [/Kind: +PodTraces/, /Note: +\S/]],
  ['volumeattributesclasses.storage.k8s.io describing', [/Driver ?Name: +describing\.example/], 34],
]

const complete: Custom = {
  name: 'describe was asked about every resource that can be listed',
  commands: ['describe'],
  run: async (cluster) => {
    const listable = (await cluster.must(['api-resources', '--verbs=list', '-o', 'name'])).split('\n')
    // Definitions that other families made are described there.
    const own = listable.filter((name) => !/\.(reading|deleting)\.example$/.test(name) && name !== 'things.describing.example')
    const asked = new Set(described.map(([what]) => what.split(' ')[0]))
    assert.deepEqual(
      own.filter((name) => !asked.has(name)),
      [],
    )
  },
}

export const describing: Family = {
  name: namespace,
  steps: [
    // A separate namespace: without a controller that computes its status, the quota admits no pods.
    says('create namespace describing-quota', /created/),
    says('create quota quota --hard=pods=5 -n describing-quota', /created/),
    says('apply -f -', /deployment\.apps\/web created/, { input: describedObjects }),
    says('wait --for=condition=Available deployment/web --timeout=30s', /condition met/),
    says('rollout status daemonset/agent --timeout=30s', /successfully rolled out/),
    says('rollout status statefulset/store --timeout=30s', /complete|updated/),
    says('wait --for=condition=Ready pod/single --timeout=30s', /condition met/),
    ...described.map(([what, want, since = 0]) => says(`describe ${what}`, want, { since, until: true })),
    complete,
    fails('describe pod nobody', /\(NotFound\): pods "nobody" not found/),
    fails('describe nonsense', /the server doesn't have a resource type "nonsense"/),
    says('describe pods,services -l app=web', /Name: +web-(.|\n)*Name: +web\n/),
    says('describe deployment web --show-events=false', /Replicas: +1 desired/),
  ],
}
