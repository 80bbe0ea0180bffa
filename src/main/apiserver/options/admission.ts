/**
 * The flags that choose the admission plugins, and the file with their configurations (L5).
 * Upstream: apiserver/pkg/server/options/admission.go, pkg/admission/config.go, pkg/kubeapiserver/options/admission.go (v1.36).
 */
import path from 'node:path'
import { decodeConfiguration } from '#api/configuration/decode'
import { anything, kind, list as listOf, text as string, struct } from '#api/configuration/schemas'
import {
  checkPolicyFile,
  eventLimits,
  imagePolicyFile,
  nodeSelectors,
  tolerationSettings,
  webhookAdmissionFile,
} from '#apiserver/admission/pluginConfigurations'
import { usualTolerationSeconds } from '#apiserver/admission/plugins/defaultTolerationSeconds'
import type { ImagePolicySettings } from '#apiserver/admission/plugins/imagePolicyWebhook'
import { admissionPlugins } from '#apiserver/admission/plugins/index'
import { podSecurityConfiguration } from '#apiserver/admission/podSecurity/configuration'
import { limitedResourcesOf } from '#apiserver/admission/quota/limitedResources'
import { type AdmissionSettings, noAdmissionFlags } from '#apiserver/admission/settings'
import { type IdentityOf, webhookIdentities } from '#apiserver/admission/webhook/identities'
import { createRealClock } from '../../realClock.ts'
import { type FlagValues, list, text, UsageError, whole } from './flags.ts'
import { kubeconfigTransport, readKubeconfig } from './kubeconfigFile.ts'
import { readNamed } from './namedFiles.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'

const byDefault = admissionPlugins.filter((plugin) => plugin.default === 'on').map(({ name }) => name)
const all = admissionPlugins.map(({ name }) => name).sort()
const choice = `(${byDefault.join(', ')}). Of ${all.join(', ')}; their order here does not matter`

const flags = {
  'admission-control': list('Deprecated: the plugins that run, and no others'),
  'admission-control-config-file': text('A file of kind AdmissionConfiguration with the configurations of plugins'),
  'default-not-ready-toleration-seconds': whole(
    'Seconds that pods without such a toleration stay on a node that is not ready',
    usualTolerationSeconds.notReady,
  ),
  'default-unreachable-toleration-seconds': whole(
    'Seconds that pods without such a toleration stay on a node that is unreachable',
    usualTolerationSeconds.unreachable,
  ),
  'disable-admission-plugins': list(`Plugins that do not run although they do by default ${choice}`),
  'enable-admission-plugins': list(`Plugins to enable in addition to the default ones ${choice}`),
} as const

type Values = FlagValues<typeof flags>

export const admission = optionGroup({
  name: 'Admission',
  flags,
  async settings(values, context): Promise<AdmissionSettings> {
    const faults = faultsOf(values)
    if (faults.length > 0) throw new UsageError(faults)
    const only = values['admission-control']
    const enabled = new Set(only.length > 0 ? only : values['enable-admission-plugins'])
    const disabled = new Set(only.length > 0 ? all.filter((name) => !enabled.has(name)) : values['disable-admission-plugins'])
    const runs = (name: string) => enabled.has(name) || (byDefault.includes(name) && !disabled.has(name))
    const configurations = await configurationsOf(values['admission-control-config-file'], context)
    const tolerationSeconds = {
      notReady: values['default-not-ready-toleration-seconds'],
      unreachable: values['default-unreachable-toleration-seconds'],
    }
    return { ...noAdmissionFlags, enabled, disabled, tolerationSeconds, ...(await pluginSettings(configurations, runs, context)) }
  },
})

function faultsOf(values: Values): string[] {
  const { 'admission-control': only, 'enable-admission-plugins': enabled, 'disable-admission-plugins': disabled } = values
  const unknown = (flag: string, names: readonly string[]) =>
    names.filter((name) => !all.includes(name)).map((name) => `${flag} plugin ${JSON.stringify(name)} is unknown`)
  const both = [...new Set(enabled)].filter((name) => disabled.includes(name)).sort()
  return [
    ...(only.length > 0 && enabled.length + disabled.length > 0
      ? ['admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive']
      : []),
    ...unknown('admission-control', only),
    ...unknown('enable-admission-plugins', enabled),
    ...unknown('disable-admission-plugins', disabled),
    ...(both.length > 0 ? [`[${both.join(' ')}] in enable-admission-plugins and disable-admission-plugins overlapped`] : []),
  ]
}

interface PluginConfiguration {
  readonly name?: string
  readonly path?: string
  readonly configuration?: unknown
}

const kinds = [
  {
    kind: 'AdmissionConfiguration',
    apiVersions: ['apiserver.config.k8s.io/v1', 'apiserver.k8s.io/v1alpha1'],
    schema: kind('AdmissionConfiguration', {
      plugins: listOf(struct('AdmissionPluginConfiguration', { name: string, path: string, configuration: anything })),
    }),
  },
]

/** What a plugin's configuration says; undefined: it has none. */
type Configurations = (name: string) => Promise<string | undefined>

async function configurationsOf(file: string, context: OptionContext): Promise<Configurations> {
  const content = await readNamed(file, context)
  if (content === undefined) return async () => undefined
  let plugins: readonly PluginConfiguration[]
  try {
    plugins = (decodeConfiguration(content, kinds).value.plugins ?? []) as readonly PluginConfiguration[]
  } catch (error) {
    throw new UsageError([`failed to read plugin config: ${(error as Error).message}`])
  }
  return async (name) => {
    const found = plugins.find((one) => one.name === name)
    if (found?.configuration !== undefined) return JSON.stringify(found.configuration)
    return found?.path ? readNamed(path.resolve(path.dirname(file), found.path), context) : undefined
  }
}

async function pluginSettings(configurations: Configurations, runs: (name: string) => boolean, context: OptionContext): Promise<Partial<AdmissionSettings>> {
  const read = async <T>(name: string, make: (content: string) => T | Promise<T>): Promise<T | undefined> => {
    const content = runs(name) ? await configurations(name) : undefined
    return content === undefined ? undefined : made(name, () => make(content))
  }
  const podSecurity = await read('PodSecurity', podSecurityConfiguration)
  const tolerations = await read('PodTolerationRestriction', tolerationSettings)
  const selectors = await read('PodNodeSelector', nodeSelectors)
  const limitedResources = await read('ResourceQuota', limitedResourcesOf)
  const limits = runs('EventRateLimit') ? await made('EventRateLimit', async () => eventLimits(await configurations('EventRateLimit'))) : undefined
  const imagePolicy = await read('ImagePolicyWebhook', (content) => imagePolicySettings(content, context))
  const identities = (kind: 'Mutating' | 'Validating') =>
    read(
      `${kind}AdmissionWebhook`,
      async (content): Promise<IdentityOf | undefined> => readKubeconfig(webhookAdmissionFile(content), context, createRealClock(), webhookIdentities),
    )
  const [mutating, validating] = [await identities('Mutating'), await identities('Validating')]
  for (const kind of ['Mutating', 'Validating'])
    await read(`${kind}AdmissionPolicy`, (content) => checkPolicyFile(content, `${kind}AdmissionPolicyConfiguration`))
  if (runs('ImagePolicyWebhook') && !imagePolicy) throw initFault('ImagePolicyWebhook', 'no config specified')
  return {
    ...(podSecurity ? { podSecurity } : {}),
    ...(tolerations ? { tolerations } : {}),
    ...(selectors ? { nodeSelectors: selectors } : {}),
    ...(limits ? { eventLimits: limits } : {}),
    ...(limitedResources ? { limitedResources } : {}),
    ...(imagePolicy ? { imagePolicy } : {}),
    ...(mutating || validating ? { webhookIdentities: { mutating, validating } } : {}),
  }
}

async function imagePolicySettings(content: string, context: OptionContext): Promise<ImagePolicySettings> {
  const { kubeConfigFile, ...settings } = imagePolicyFile(content)
  const transport = await kubeconfigTransport(kubeConfigFile, context)
  if (!transport) throw new Error('kubeConfigFile is required')
  return { ...settings, transport }
}

async function made<T>(plugin: string, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    throw initFault(plugin, (error as Error).message)
  }
}

function initFault(plugin: string, why: string): UsageError {
  return new UsageError([`couldn't init admission plugin ${JSON.stringify(plugin)}: ${why}`])
}
