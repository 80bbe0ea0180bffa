/** delete: by name, label and file, in its cascade modes, with grace, with and without waiting, and of whole namespaces and definitions. */
import { type Family, fails, says } from './steps.ts'

const controller = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name, labels: { set: 'yes' } },
  spec: {
    replicas: 1,
    selector: { matchLabels: { of: name } },
    template: { metadata: { labels: { of: name } }, spec: { containers: [{ name: 'main', image: 'main' }], terminationGracePeriodSeconds: 1 } },
  },
})
const configMap = (name: string, metadata: object = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata } })
const words = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'words.deleting.example' },
  spec: {
    group: 'deleting.example',
    scope: 'Namespaced',
    names: { plural: 'words', kind: 'Word' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}

export const deleting: Family = {
  name: 'deleting',
  steps: [
    says('apply -f -', /created/, {
      input: [
        controller('orphaned'),
        controller('foreground'),
        controller('background'),
        configMap('one', { labels: { set: 'yes' } }),
        configMap('two'),
        configMap('held', { finalizers: ['example.com/hold'] }),
      ],
    }),
    says('wait --for=condition=Ready pod --all --timeout=30s', /condition met/, { until: true }),

    says('delete configmap one --dry-run=server', /^configmap "one" deleted (from deleting namespace )?\(server dry run\)$/m),
    says('delete configmap -l set=yes', /^configmap "one" deleted/),
    fails('delete configmap one', /\(NotFound\): configmaps "one" not found/),
    says('delete configmap one --ignore-not-found', ''),
    says('delete configmap two -o name', 'configmap/two'),
    says('delete configmap held --wait=false', /^configmap "held" deleted/),
    says(`get configmap held -o jsonpath='{.metadata.deletionTimestamp}'`, /^\d{4}-/),
    fails('delete configmap held --timeout=1s', /timed out waiting for the condition on configmaps\/held/),
    says(`patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'`, /patched/),
    fails('get configmap held', /NotFound/),

    says('delete replicaset orphaned --cascade=orphan', /^replicaset\.apps "orphaned" deleted/),
    says('get pods -l of=orphaned -o name', /^pod\/orphaned-/),
    says('delete replicaset foreground --cascade=foreground --timeout=30s', /^replicaset\.apps "foreground" deleted/),
    says('get pods -l of=foreground -o name', ''),
    says('delete replicaset background --cascade=background', /^replicaset\.apps "background" deleted/),
    says('get pods -l of=background -o name', '', { until: true }),
    says('delete pod -l of=orphaned --grace-period=0 --force', /^pod "orphaned-\w+" force deleted/, {
      err: /Immediate deletion does not wait for confirmation/,
    }),
    says('run short --image=main', 'pod/short created'),
    says('delete pod short --now', /^pod "short" deleted/),
    fails('delete pod', /resource\(s\) were provided, but no name( or label selector|, label selector, or --all flag) was? ?specified|no name/),
    says('delete pods --all', 'No resources found'),

    says('apply -f -', /words\.deleting\.example created/, { input: [words] }),
    says('wait --for=condition=Established crd/words.deleting.example --timeout=20s', /condition met/),
    says('apply -f -', 'word.deleting.example/hello created', {
      input: '{"apiVersion":"deleting.example/v1","kind":"Word","metadata":{"name":"hello"}}',
      until: true,
    }),
    says('delete crd words.deleting.example --timeout=30s', /^customresourcedefinition\.apiextensions\.k8s\.io "words\.deleting\.example" deleted/),
    fails('get --raw /apis/deleting.example/v1/namespaces/deleting/words', /NotFound/),

    says('create namespace deleting-whole', /created/),
    says('create configmap inside -n deleting-whole', /created/),
    says('delete namespace deleting-whole --timeout=30s', 'namespace "deleting-whole" deleted'),
    fails('get configmap inside -n deleting-whole', /NotFound/),
    fails('delete namespace default', /\(Forbidden\): namespaces "default" is forbidden: this namespace may not be deleted/),
  ],
}
