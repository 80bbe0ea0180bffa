/** apply in both ways with its sub-commands and pruning, diff, and kustomize. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Family, fails, says } from './steps.ts'

const configMap = (name: string, data: object, labels?: object) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data })
const settings = (data: object) => ({ input: configMap('settings', data) })
const data = (want: string) => says(`get configmap settings -o jsonpath='{.data}'`, want)
const serverSide = (manager: string) => `apply --server-side --field-manager=${manager}`
const applySets = { env: { KUBECTL_APPLYSET: 'true' }, since: 27 }

export const applying: Family = {
  name: 'applying',
  prepare: async ({ dir }) => {
    await Promise.all(['set', 'layer'].map((name) => fs.mkdir(path.join(dir, name))))
    await fs.writeFile(path.join(dir, 'one.json'), configMap('settings', { a: '1' }))
    await fs.writeFile(path.join(dir, 'plain.json'), configMap('plain', { a: '1' }))
    await fs.writeFile(path.join(dir, 'set/first.json'), configMap('first', {}, { set: 'yes' }))
    await fs.writeFile(path.join(dir, 'set/second.json'), configMap('second', { a: 'b' }, { set: 'yes' }))
    await fs.writeFile(path.join(dir, 'layer/base.json'), configMap('base', { a: '1' }))
    const layer = { resources: ['base.json'], namePrefix: 'dev-', configMapGenerator: [{ name: 'made', literals: ['a=b'] }] }
    await fs.writeFile(path.join(dir, 'layer/kustomization.yaml'), JSON.stringify(layer))
  },
  steps: [
    says('apply -f -', 'configmap/settings created', settings({ a: '1', b: '2' })),
    says('apply -f -', 'configmap/settings unchanged', settings({ a: '1', b: '2' })),
    says('apply -f - --dry-run=server', 'configmap/settings configured (server dry run)', settings({ a: '3' })),
    data('{"a":"1","b":"2"}'),
    says('apply -f -', 'configmap/settings configured', settings({ a: '3' })),
    data('{"a":"3"}'),
    says('create configmap plain --from-literal=a=0', 'configmap/plain created'),
    says('apply -f plain.json', 'configmap/plain configured', { err: /missing the kubectl\.kubernetes\.io\/last-applied-configuration annotation/ }),
    fails('apply -f -', /strict decoding error: unknown field "dota"|error validating data: .*unknown field "dota"/, {
      input: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"dota":{}}',
    }),
    fails('apply -f -', /no matches for kind "Nonsense" in version "v1"/, { input: '{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"x"}}' }),

    says('apply view-last-applied configmap/settings', /^apiVersion: v1\ndata:\n {2}a: "3"\nkind: ConfigMap\n/),
    says('apply edit-last-applied configmap/settings', 'configmap/settings edited', { env: { KUBE_EDITOR: 'sed -i s/3/4/' } }),
    says('apply view-last-applied configmap/settings -o json', /"a": "4"/),
    data('{"a":"3"}'),
    says('apply set-last-applied -f one.json', 'configmap/settings configured'),
    says('apply set-last-applied -f one.json', 'set-last-applied settings: no changes required.'),
    fails('apply set-last-applied -f -', /no last-applied-configuration annotation found on resource: kube-root-ca\.crt/, {
      input: configMap('kube-root-ca.crt', {}),
    }),
    says('apply set-last-applied --create-annotation -f -', 'configmap/kube-root-ca.crt configured', { input: configMap('kube-root-ca.crt', {}) }),
    fails('apply view-last-applied configmap/nobody', /configmaps "nobody" not found/),

    says('diff -f -', [/^-\s+a: "3"$/m, /^\+\s+a: new$/m], { ...settings({ a: 'new' }), code: 1 }),
    says('diff --server-side --force-conflicts -f -', /^\+\s+a: new$/m, { ...settings({ a: 'new' }), code: 1 }),
    says('diff -f -', /^\+kind: ConfigMap$/m, { input: configMap('unborn', {}), code: 1 }),
    data('{"a":"3"}'),

    says(`${serverSide('one')} -f -`, 'configmap/shared serverside-applied', { input: configMap('shared', { a: '1' }) }),
    fails(`${serverSide('two')} -f -`, [/Apply failed with 1 conflict: conflict with "one"/, /\.data\.a/, /--force-conflicts/], {
      input: configMap('shared', { a: '2' }),
    }),
    says(`${serverSide('two')} --force-conflicts -f -`, 'configmap/shared serverside-applied', { input: configMap('shared', { a: '2', b: '2' }) }),
    says(`${serverSide('two')} -f - --dry-run=server`, 'configmap/shared serverside-applied (server dry run)', { input: configMap('shared', {}) }),
    says(`get configmap shared -o jsonpath='{.data}'`, '{"a":"2","b":"2"}'),
    says(`${serverSide('two')} -f -`, 'configmap/shared serverside-applied', { input: configMap('shared', { a: '2' }) }),
    says(`get configmap shared -o jsonpath='{.data}'`, '{"a":"2"}'),

    says('apply -f set', 'configmap/first created\nconfigmap/second created'),
    // Older kubectl has batch/v1beta1 in its default list of kinds to prune.
    says('apply --prune -l set=yes -f set/second.json', [/configmap\/second unchanged/, /configmap\/first pruned/], { since: 22 }),
    says('get configmaps -l set=yes -o name', 'configmap/second', { since: 22 }),
    says(
      'apply --prune --applyset=whole -f set',
      [/configmap\/first created|configmap\/first serverside-applied/, /configmap\/second (unchanged|configured)/],
      applySets,
    ),
    says('apply --prune --applyset=whole -f set/second.json', [/configmap\/second unchanged/, /configmap\/first pruned/], applySets),

    says('kustomize layer', /^apiVersion: v1\ndata:\n {2}a: "1"\nkind: ConfigMap\nmetadata:\n {2}name: dev-base\n---\n(.|\n)*name: dev-made-\w{10}/, {
      since: 21,
      row: 'CRD-10',
    }),
    fails('kustomize set', /unable to find one of 'kustomization\.yaml', 'kustomization\.yml' or 'Kustomization'/),
    says('apply -k layer', /configmap\/dev-base created\nconfigmap\/dev-made-\w{10} created/, { row: 'CRD-10' }),
    says('get -k layer -o name', /^configmap\/dev-base\nconfigmap\/dev-made-/),
    says('diff -k layer', '', { row: 'CRD-10' }),
    says('delete -k layer', /configmap "dev-base" deleted.*\nconfigmap "dev-made-\w{10}" deleted/),
  ],
}
