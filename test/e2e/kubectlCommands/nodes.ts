/** What an operator does to nodes: cordon, uncordon, taint and drain. Pods that are drained are bound to the node by name. */
import { type Family, fails, says } from './steps.ts'

const node = 'e2e-commands-sim-3'
const spec = { nodeName: node, terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'main' }] }
const bare = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bare', labels: { app: 'drained' } }, spec }
const owned = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'owned' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { of: 'owned' } },
    template: { metadata: { labels: { app: 'drained', of: 'owned' } }, spec: { ...spec, nodeName: undefined } },
  },
}
const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'keep' },
  spec: { minAvailable: 3, selector: { matchLabels: { app: 'drained' } } },
}
const drain = `drain ${node} --pod-selector=app=drained --ignore-daemonsets`

export const nodes: Family = {
  name: 'nodes',
  steps: [
    says(`taint node ${node} color=red:NoSchedule`, `node/${node} tainted`),
    fails(
      `taint node ${node} color=red:NoSchedule`,
      /already has color taint\(s\) with same effect\(s\) and --overwrite is false|already has a taint\(s\) with same effect\(s\) and --overwrite is false/,
    ),
    says(`taint node ${node} color=blue:NoSchedule --overwrite`, `node/${node} modified`),
    says(`get node ${node} -o jsonpath='{.spec.taints}'`, '[{"effect":"NoSchedule","key":"color","value":"blue"}]'),
    says(`taint node ${node} color-`, `node/${node} untainted`),
    fails(`taint node ${node} color-`, /taint "color" not found/),
    fails(`taint node ${node} color=red:Nonsense`, /invalid taint effect: Nonsense, unsupported taint effect/),

    says(`cordon ${node}`, `node/${node} cordoned`),
    says(`cordon ${node}`, `node/${node} already cordoned`),
    says(`get node ${node}`, /Ready,SchedulingDisabled/),
    says(`uncordon ${node}`, `node/${node} uncordoned`),
    says(`uncordon ${node}`, `node/${node} already uncordoned`),
    fails('cordon nobody', /nodes "nobody" not found/),

    says('apply -f -', 'pod/bare created\nreplicaset.apps/owned created', {
      input: [bare, owned],
    }),
    says('wait --for=condition=Ready pod --all --timeout=30s', /pod\/bare condition met/, { until: true }),
    says('create --raw /api/v1/namespaces/nodes/pods/bare/eviction -f -', /"status":"Success"/, {
      input: '{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"bare"},"deleteOptions":{"dryRun":["All"]}}',
    }),
    fails(drain, /(declare no controller|not managed by)(.|\n)*nodes\/bare/),
    says(`${drain} --force --timeout=30s`, [/pod\/bare evicted/, new RegExp(`node/${node} (drained|evicted)`)]),
    says('get pods -o name', /pod\/owned-/),
    fails('get pod bare', /NotFound/),
    says(`get pods --field-selector=spec.nodeName=${node} -o name`, '', { until: true }),
    says(`uncordon ${node}`, `node/${node} uncordoned`),

    // A budget that allows nothing holds the draining up until its time is over.
    says('apply -f -', 'poddisruptionbudget.policy/keep created\npod/bare created', { input: [budget, bare], since: 21 }),
    says('wait --for=condition=Ready pod/bare --timeout=30s', 'pod/bare condition met', { since: 21 }),
    says(`get pdb keep -o jsonpath='{.status.expectedPods}'`, '3', { until: true, since: 21 }),
    fails(`${drain} --force --timeout=2s`, /Cannot evict pod as it would violate the pod's disruption budget\./, { since: 21 }),
    says(`${drain} --force --disable-eviction --timeout=30s`, /pod\/bare deleted/, { since: 21 }),
    says(`uncordon ${node}`, `node/${node} uncordoned`, { since: 21 }),
  ],
}
