/** The webhook that is asked about bearer tokens (L5). Upstream: WebHookAuthenticationOptions of pkg/kubeapiserver/options/authentication.go (v1.36). */
import type { WebhookTokenSettings } from '#apiserver/authn/webhookToken'
import { duration, type FlagValues, text } from './flags.ts'
import { kubeconfigTransport } from './kubeconfigFile.ts'
import type { OptionContext } from './optionGroup.ts'

export const webhookTokenFlags = {
  'authentication-token-webhook-cache-ttl': duration('How long answers of the webhook about a token hold', 120_000),
  'authentication-token-webhook-config-file': text('A kubeconfig whose current cluster is the webhook that is asked about bearer tokens, at just that URL'),
  'authentication-token-webhook-version': text('Of the TokenReview that the webhook gets and answers: v1 or v1beta1', 'v1beta1'),
} as const

type Values = FlagValues<typeof webhookTokenFlags>

const isVersion = (version: string): version is WebhookTokenSettings['version'] => version === 'v1' || version === 'v1beta1'

export function webhookTokenFaults({ 'authentication-token-webhook-config-file': file, 'authentication-token-webhook-version': version }: Values): string[] {
  if (file === '' || isVersion(version)) return []
  return [`unsupported authentication webhook version ${JSON.stringify(version)}, supported versions are "v1", "v1beta1"`]
}

/** Undefined: no webhook. @throws UsageError for a kubeconfig that leads nowhere */
export async function webhookTokenSettings(values: Values, context: OptionContext): Promise<WebhookTokenSettings | undefined> {
  const version = values['authentication-token-webhook-version']
  const transport = await kubeconfigTransport(values['authentication-token-webhook-config-file'], context)
  if (transport === undefined || !isVersion(version)) return undefined
  return { transport, version, cacheTtlMs: values['authentication-token-webhook-cache-ttl'] }
}
