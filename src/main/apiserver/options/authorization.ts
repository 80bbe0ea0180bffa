/**
 * The flags that choose the authorizers (L5): a list of modes, or a configuration file.
 * Upstream: pkg/kubeapiserver/options/authorization.go (v1.36), with the default modes of kubeadm.
 */
import { statSync } from 'node:fs'
import { parseAbacPolicies } from '#apiserver/authz/abac'
import { type AuthorizationMode, authorizationModes, decodeAuthorizationConfiguration, type WebhookConfiguration } from '#apiserver/authz/configuration/types'
import { nameOfMode, type ValidatedAuthorizer, validateAuthorizationConfiguration } from '#apiserver/authz/configuration/validation'
import type { AuthorizationSettings, ConfiguredAuthorizer } from '#apiserver/authz/settings'
import { duration, type FlagValues, list, text, UsageError } from './flags.ts'
import { kubeconfigTransport } from './kubeconfigFile.ts'
import { readNamed, usable } from './namedFiles.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'

const flags = {
  'authorization-config': text('A file of kind AuthorizationConfiguration with the authorizers, in their order; it excludes the flags that say the same'),
  'authorization-mode': list(`Who is asked what users may do, in this order, of ${authorizationModes.join(', ')}`, ['Node', 'RBAC']),
  'authorization-policy-file': text('A policy a line, in JSON, for mode ABAC'),
  'authorization-webhook-cache-authorized-ttl': duration('How long the webhook is not asked again about what it allowed', 300_000),
  'authorization-webhook-cache-unauthorized-ttl': duration('How long the webhook is not asked again about what it did not allow', 30_000),
  'authorization-webhook-config-file': text('A kubeconfig whose current cluster is the webhook of mode Webhook, at just that URL'),
  'authorization-webhook-version': text('Of the SubjectAccessReview that the webhook gets and answers: v1 or v1beta1', 'v1beta1'),
} as const

type Values = FlagValues<typeof flags>

export const authorization = optionGroup({
  name: 'Authorization',
  flags,
  async settings(values, context): Promise<AuthorizationSettings> {
    const faults = values['authorization-config'] === '' ? modeFaults(values) : configFaults(values)
    if (faults.length > 0) throw new UsageError(faults)
    const content = await readNamed(values['authorization-policy-file'], context)
    const policies = content === undefined ? undefined : usable(() => parseAbacPolicies(content, values['authorization-policy-file']))
    if (values['authorization-config'] !== '') return { ...(await settingsOfFile(values['authorization-config'], context)), policies }
    const modes = values['authorization-mode'] as readonly AuthorizationMode[]
    return {
      authorizers: await withTransports(
        modes.map((mode) => authorizerOfMode(mode, values)),
        context,
      ),
      policies,
    }
  },
})

async function settingsOfFile(file: string, context: OptionContext): Promise<AuthorizationSettings> {
  const source = context.file(file)
  const content = (await readNamed(file, { file: () => source })) ?? ''
  const read = (text: string, required: readonly AuthorizationMode[] = []) =>
    withTransports(validateAuthorizationConfiguration(decodeAuthorizationConfiguration(text), { fileFault, required }), context)
  try {
    return { authorizers: await read(content), file: { source, content, read } }
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError([(error as Error).message])
  }
}

function fileFault(name: string): string | undefined {
  try {
    return statSync(name).isFile() ? undefined : 'must be a regular file'
  } catch (error) {
    const isMissing = (error as { readonly code?: string }).code === 'ENOENT'
    return `error loading file: stat ${name}: ${isMissing ? 'no such file or directory' : (error as Error).message}`
  }
}

/** @throws UsageError for kubeconfigs that lead nowhere */
function withTransports(authorizers: readonly ValidatedAuthorizer[], context: OptionContext): Promise<readonly ConfiguredAuthorizer[]> {
  return Promise.all(
    authorizers.map(async (one) => {
      const file = one.webhook?.connectionInfo.kubeConfigFile
      if (!one.webhook) return one
      if (!file) throw new UsageError([`authorizer ${one.name}: connectionInfo.type InClusterConfig is not for kube-apiserver`])
      return { ...one, transport: await kubeconfigTransport(file, context) }
    }),
  )
}

/** Upstream gives the webhook of the flags this name. */
const defaultWebhookName = 'default'

function authorizerOfMode(mode: AuthorizationMode, values: Values): ValidatedAuthorizer {
  if (mode !== 'Webhook') return { type: mode, name: nameOfMode(mode), conditions: [] }
  const authorizedTtlMs = values['authorization-webhook-cache-authorized-ttl']
  const unauthorizedTtlMs = values['authorization-webhook-cache-unauthorized-ttl']
  const webhook: WebhookConfiguration = {
    authorizedTtlMs,
    cacheAuthorizedRequests: authorizedTtlMs !== 0,
    unauthorizedTtlMs,
    cacheUnauthorizedRequests: unauthorizedTtlMs !== 0,
    timeoutMs: 30_000,
    subjectAccessReviewVersion: values['authorization-webhook-version'],
    matchConditionSubjectAccessReviewVersion: '',
    failurePolicy: 'NoOpinion',
    connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: values['authorization-webhook-config-file'] },
    matchConditions: [],
  }
  return { type: mode, name: defaultWebhookName, webhook, conditions: [] }
}

const excluded = [
  'authorization-mode',
  'authorization-webhook-config-file',
  'authorization-webhook-version',
  'authorization-webhook-cache-authorized-ttl',
  'authorization-webhook-cache-unauthorized-ttl',
] as const

function configFaults(values: Values): string[] {
  const isSet = excluded.some((name) => String(values[name]) !== String(flags[name].default))
  return isSet ? ['--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined'] : []
}

const versions = ['v1', 'v1beta1']

function modeFaults(values: Values): string[] {
  const modes = values['authorization-mode']
  const policyFile = values['authorization-policy-file']
  const webhookFile = values['authorization-webhook-config-file']
  const version = values['authorization-webhook-version']
  const faults = modes.length === 0 ? ['at least one authorization-mode must be passed'] : []
  for (const mode of modes) {
    if (!(authorizationModes as readonly string[]).includes(mode)) faults.push(`authorization-mode ${JSON.stringify(mode)} is not a valid mode`)
    if (mode === 'ABAC' && policyFile === '') faults.push("authorization-mode ABAC's authorization policy file not passed")
    if (mode === 'Webhook' && webhookFile === '') faults.push("authorization-mode Webhook's authorization config file not passed")
  }
  if (policyFile !== '' && !modes.includes('ABAC')) faults.push('cannot specify --authorization-policy-file without mode ABAC')
  if (webhookFile !== '' && !modes.includes('Webhook')) faults.push('cannot specify --authorization-webhook-config-file without mode Webhook')
  if (new Set(modes).size !== modes.length) {
    faults.push(`authorization-mode [${modes.map((mode) => JSON.stringify(mode)).join(' ')}] has mode specified more than once`)
  }
  if (modes.includes('Webhook') && !versions.includes(version)) {
    const known = versions.map((one) => JSON.stringify(one)).join(', ')
    faults.push(`unsupported webhook authorizer version ${JSON.stringify(version)}, supported versions are ${known}`)
  }
  return faults
}
