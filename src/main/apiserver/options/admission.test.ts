import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from './flags.ts'
import { serverOptions } from './index.ts'

const settings = async (flags: readonly string[], files: Record<string, string> = {}) => {
  const file = (path: string) => ({
    path,
    follow: () => {},
    read: async () => {
      const content = files[path]
      if (content === undefined) throw new Error(`open ${path}: no such file or directory`)
      return content
    },
  })
  return (await serverOptions(flags, { file })).admission
}

const configuration = (plugins: string) => `apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n${plugins}`
const withFile = ['--admission-control-config-file=/etc/admission.yaml']

test('ADM-01 plugins are enabled, disabled, and named alone', async () => {
  const some = await settings(['--enable-admission-plugins=AlwaysPullImages,NodeRestriction', '--disable-admission-plugins=PodSecurity'])
  assert.deepEqual([[...some.enabled], [...some.disabled]], [['AlwaysPullImages', 'NodeRestriction'], ['PodSecurity']])
  const alone = await settings(['--admission-control=LimitRanger'])
  assert.deepEqual([[...alone.enabled], alone.disabled.size], [['LimitRanger'], 40])
})

test('ADM-08 the admission file configures plugins inline and by files in its folder', async () => {
  const file = configuration(
    '- name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n    defaults: {enforce: baseline}\n- name: EventRateLimit\n  path: events.yaml\n- name: PodNodeSelector\n  path: selectors.yaml\n- name: PodTolerationRestriction\n  path: tolerations.yaml\n',
  )
  const events = 'apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n- {type: Server, qps: 5, burst: 9}\n'
  const tolerations = 'apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\ndefault:\n- {key: a, operator: Exists}\n'
  const found = await settings([...withFile, '--enable-admission-plugins=EventRateLimit,PodNodeSelector,PodTolerationRestriction'], {
    '/etc/admission.yaml': file,
    '/etc/events.yaml': events,
    '/etc/selectors.yaml': 'podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: a=b\n',
    '/etc/tolerations.yaml': tolerations,
  })
  assert.deepEqual(found.podSecurity.defaults.enforce, { level: 'baseline', version: 'latest' })
  assert.deepEqual(found.eventLimits, [{ type: 'Server', qps: 5, burst: 9, cacheSize: 0 }])
  assert.deepEqual(found.nodeSelectors, { clusterDefaultNodeSelector: 'a=b' })
  assert.deepEqual(found.tolerations, { default: [{ key: 'a', operator: 'Exists' }], whitelist: [] })
})

const pluginFile = (name: string, content: string) =>
  configuration(`- name: ${name}\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ${content}}\n`)

const refused: readonly { readonly flags: readonly string[]; readonly file?: string; readonly why: string }[] = [
  { flags: ['--enable-admission-plugins=Nothing'], why: 'enable-admission-plugins plugin "Nothing" is unknown' },
  {
    flags: ['--enable-admission-plugins=PodSecurity', '--disable-admission-plugins=PodSecurity'],
    why: '[PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped',
  },
  {
    flags: ['--admission-control=PodSecurity', '--disable-admission-plugins=LimitRanger'],
    why: 'admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive',
  },
  { flags: withFile, file: configuration('- nam: x\n'), why: 'failed to read plugin config: strict decoding error: unknown field "plugins[0].nam"' },
  {
    flags: ['--enable-admission-plugins=EventRateLimit'],
    why: 'couldn\'t init admission plugin "EventRateLimit": limits: Invalid value: []: must not be empty',
  },
  { flags: ['--enable-admission-plugins=ImagePolicyWebhook'], why: 'couldn\'t init admission plugin "ImagePolicyWebhook": no config specified' },
  {
    flags: [...withFile, '--enable-admission-plugins=ImagePolicyWebhook'],
    file: configuration('- name: ImagePolicyWebhook\n  configuration: {imagePolicy: {kubeConfigFile: k, allowTTL: 4000}}\n'),
    why: 'couldn\'t init admission plugin "ImagePolicyWebhook": valid value is between 1s and 30m0s, got 4000s',
  },
  {
    flags: withFile,
    file: pluginFile('ValidatingAdmissionWebhook', 'WebhookAdmissionConfiguration, kubeConfigFile: relative'),
    why: 'couldn\'t init admission plugin "ValidatingAdmissionWebhook": kubeConfigFile: Invalid value: "relative": must be an absolute file path',
  },
  {
    flags: withFile,
    file: pluginFile('MutatingAdmissionWebhook', 'WebhookAdmissionConfiguration, kubeConfigFile: /none'),
    why: 'couldn\'t init admission plugin "MutatingAdmissionWebhook": open /none: no such file or directory',
  },
  ...['MutatingAdmissionWebhook', 'ValidatingAdmissionPolicy', 'MutatingAdmissionPolicy'].map((plugin) => ({
    flags: withFile,
    file: pluginFile(plugin, `${plugin.replace('MutatingAdmissionWebhook', 'WebhookAdmission')}Configuration, staticManifestsDir: /etc`),
    why: `couldn't init admission plugin "${plugin}": staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled`,
  })),
]
for (const { flags, file, why } of refused) {
  test(`refused: ${why}`, () =>
    assert.rejects(settings(flags, file === undefined ? {} : { '/etc/admission.yaml': file }), (error) => {
      assert.ok(error instanceof UsageError)
      assert.deepEqual(error.faults, [why])
      return true
    }))
}

test('RES-03 the configuration of ResourceQuota lists resources that need a quota', async () => {
  const limited = '    - {apiGroup: "", resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]}\n'
  const file = configuration(
    `- name: ResourceQuota\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: ResourceQuotaConfiguration\n    limitedResources:\n${limited}`,
  )
  const { limitedResources } = await settings(withFile, { '/etc/admission.yaml': file })
  const matchScopes = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }]
  assert.deepEqual(limitedResources, [{ apiGroup: '', resource: 'pods', matchScopes }])
})
