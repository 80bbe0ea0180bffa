/** Changes of existing objects: edit, patch, replace, label, annotate, and wait. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Custom, type Family, fails, listOf, run, says } from './steps.ts'

const settings = (data: object) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data })
const data = (want: string) => says(`get configmap settings -o jsonpath='{.data}'`, want)
const patch = (what: string, body: unknown, flags = '') => `patch ${what} ${flags} -p '${JSON.stringify(body)}'`
const editor = (expression: string) => ({ KUBE_EDITOR: `sed -i ${expression}` })

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } },
  },
}

/** Starts to wait, does what is waited for, and holds what the waiting printed against the pattern. */
function waiting(line: readonly string[], act: readonly string[], want: RegExp, since = 0): Custom {
  return {
    name: `${line.join(' ')} while: ${act.join(' ')}`,
    commands: ['wait'],
    since,
    run: async (cluster, namespace) => {
      const waits = run(cluster, namespace, line)
      await cluster.must(['-n', namespace, ...act])
      const { code, stdout, stderr } = await waits
      if (code !== 0 || !want.test(stdout)) throw new Error(`exit ${code}\n${stdout}${stderr}`)
    },
  }
}

export const changing: Family = {
  name: 'changing',
  prepare: async ({ dir }) => {
    await fs.writeFile(path.join(dir, 'settings.json'), settings({ a: '1' }))
    await fs.writeFile(path.join(dir, 'web.json'), listOf([deployment]))
  },
  steps: [
    says('create -f settings.json -f web.json', 'configmap/settings created\ndeployment.apps/web created'),

    says('edit configmap settings', 'configmap/settings edited', { env: editor(`'s/a: "1"/a: edited/'`) }),
    data('{"a":"edited"}'),
    says('edit configmap settings', '', { env: editor('s/nothing/at-all/'), err: /Edit cancelled, no changes made\./ }),
    says('label configmap settings tier=front', 'configmap/settings labeled'),
    fails('edit configmap settings', [/error: configmaps "settings" is invalid/, /error: Edit cancelled, no valid changes were saved\./], {
      env: editor(`'s/tier: front/tier: not ok/'`),
    }),
    says('label configmap settings tier-', /configmap\/settings (un)?labeled/),
    says('edit deployment web --subresource=status', 'deployment.apps/web edited', { env: editor(`'s/  replicas: .*/  replicas: 7/'`), since: 27 }),

    says(patch('configmap settings', { data: { b: 'strategic' } }), 'configmap/settings patched'),
    says(patch('configmap settings', { data: { b: 'strategic' } }), 'configmap/settings patched (no change)'),
    says(patch('configmap settings', { data: { a: null, c: 'merge' } }, '--type=merge'), 'configmap/settings patched'),
    says(patch('configmap settings', [{ op: 'add', path: '/data/d', value: 'json' }], '--type=json'), 'configmap/settings patched'),
    data('{"b":"strategic","c":"merge","d":"json"}'),
    fails(patch('configmap settings', [{ op: 'test', path: '/data/d', value: 'other' }], '--type=json'), /^The request is invalid/),
    fails(patch('configmap settings', [{ op: 'remove', path: '/data/none' }], '--type=json'), /^The request is invalid/),
    fails(
      patch('configmap settings', { data: 3 }, '--type=merge'),
      /cannot unmarshal number into Go struct field ConfigMap\.data of type map\[string\]string|cannot be handled as a ConfigMap/,
    ),
    fails(patch('configmap nobody', {}), /\(NotFound\): configmaps "nobody" not found/),
    says(patch('configmap settings', { dota: {} }, '--type=merge'), 'configmap/settings patched (no change)', { err: /Warning: unknown field "dota"/ }),
    says(patch('deployment web', { spec: { template: { spec: { containers: [{ name: 'web', image: 'web:2' }] } } } }), 'deployment.apps/web patched'),
    says(`get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}'`, 'web:2'),
    says(patch('deployment web', { spec: { replicas: 2 } }, '--subresource=scale --type=merge'), /\/web patched$/m, { since: 24 }),
    says(
      patch('deployment web', { status: { collisionCount: 3 }, spec: { replicas: 9 } }, '--subresource=status --type=merge'),
      'deployment.apps/web patched',
      {
        since: 24,
      },
    ),
    says(`get deployment web -o jsonpath='{.spec.replicas} {.status.collisionCount}'`, '2 3', { since: 24 }),
    says('get deployment web --subresource=scale -o yaml', /kind: Scale\n(.|\n)*spec:\n +replicas: 2\n/, { since: 24 }),

    says('replace -f settings.json', 'configmap/settings replaced'),
    data('{"a":"1"}'),
    says('replace --force -f settings.json', /configmap "settings" deleted.*\nconfigmap\/settings replaced/),
    fails('replace -f -', /\(NotFound\): error when replacing "STDIN": configmaps "nobody" not found/, {
      input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"nobody"}}',
    }),
    fails(
      'replace -f -',
      /\(Conflict\): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again/,
      {
        input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","resourceVersion":"1"}}',
      },
    ),
    fails('replace -f -', /spec\.selector: Invalid value: .*field is immutable/, {
      // The controller may have written between kubectl's read and its write.
      until: true,
      input: [
        {
          ...deployment,
          spec: { ...deployment.spec, selector: { matchLabels: { app: 'x' } }, template: { ...deployment.spec.template, metadata: { labels: { app: 'x' } } } },
        },
      ],
    }),
    says('replace --raw /api/v1/namespaces/changing/configmaps/settings -f settings.json', /^\{.*"kind":"ConfigMap"|"data":\{"a":"1"\}/),
    says('create --raw /api/v1/namespaces/changing/configmaps -f -', /"name":"raw"/, {
      input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}',
    }),
    says('delete --raw /api/v1/namespaces/changing/configmaps/raw', /"status":"Success"/),

    says('label configmap settings tier=front stage=test', 'configmap/settings labeled'),
    fails('label configmap settings tier=back', /'tier' already has a value \(front\), and --overwrite is false/),
    says('label configmap settings tier=back --overwrite', 'configmap/settings labeled'),
    says('label configmap settings tier=back --overwrite', 'configmap/settings not labeled'),
    says('label configmap settings --list', /stage=test/, { since: 32 }),
    says('label configmap settings stage-', /configmap\/settings (un)?labeled/),
    says('label configmap settings stage-', /label "stage" not found\.\nconfigmap\/settings not labeled/),
    says('label configmaps --all every=one', /configmap\/kube-root-ca\.crt labeled\nconfigmap\/settings labeled/),
    fails('label configmap settings a=b --resource-version=1', /\(Conflict\): Operation cannot be fulfilled on configmaps "settings"/),
    says('annotate configmap settings note=hello', 'configmap/settings annotated'),
    fails(
      'annotate configmap settings note=bye',
      /--overwrite is false but found the following declared annotation\(s\): 'note' already has a value \(hello\)/,
    ),
    says('annotate configmap settings note=bye --overwrite', 'configmap/settings annotated'),
    says(`get configmap settings -o jsonpath='{.metadata.annotations} {.metadata.labels}'`, '{"note":"bye"} {"every":"one","tier":"back"}'),
    says('annotate configmap settings note-', 'configmap/settings annotated'),

    says('wait --for=condition=Available deployment/web --timeout=30s', 'deployment.apps/web condition met'),
    fails('wait --for=condition=Nonsense deployment/web --timeout=1s', 'error: timed out waiting for the condition on deployments/web'),
    says(`wait --for=jsonpath='{.data.a}'=1 configmap/settings`, 'configmap/settings condition met', { since: 23 }),
    says(`wait --for=jsonpath='{.data.a}' configmap/settings`, 'configmap/settings condition met', { since: 31 }),
    fails('wait --for=condition=Ready pod/nobody', /\(NotFound\): pods "nobody" not found/),
    waiting(
      ['wait', '--for=jsonpath={.data.a}=2', 'configmap/settings', '--timeout=20s'],
      ['patch', 'configmap', 'settings', '-p', '{"data":{"a":"2"}}'],
      /condition met/,
      23,
    ),
    waiting(['wait', '--for=create', 'configmap/late', '--timeout=20s'], ['create', 'configmap', 'late'], /configmap\/late condition met/, 31),
    waiting(['wait', '--for=delete', 'configmap/settings', '--timeout=20s'], ['delete', 'configmap', 'settings'], /condition met|^$/),
  ],
}
