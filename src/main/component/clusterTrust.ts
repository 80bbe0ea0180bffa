/**
 * Authorities for client certificates at a component's port (L5): from flags, or else those that the cluster publishes in kube-system for extension
 * servers; followed, since authorities are renewed. Upstream: apiserver/pkg/server/options/authentication_dynamic_request_header.go,
 * pkg/server/dynamiccertificates/configmap_cafile_content.go (v1.36).
 */
import type { RequestHeaderSettings } from '#apiserver/authn/settings'
import type { ClientAuthorities } from '#apiserver/server/peerCertificate'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { configMaps } from '#client/builtIn'
import type { Client } from '#client/client'
import { followCertificates } from '../apiserver/fromOptions.ts'
import type { DelegatedAuthenticationSettings } from './options/delegatedAuthentication.ts'

export interface ClusterTrust {
  authorities(): ClientAuthorities
  requestHeader(): RequestHeaderSettings
  /** Calls `changed` when the authorities have changed. */
  onChange(changed: () => void): void
  /** Looks again and again until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>
}

const lookEveryMs = 60_000
const retryMs = 2_000
const timeoutMs = 5_000
const configMap = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }

type Published = Readonly<Record<string, string>>

/**
 * @param client undefined: no API server is configured
 * @throws Error when the cluster could not be asked and that is not tolerated
 */
export async function openClusterTrust(
  client: Client | undefined,
  settings: DelegatedAuthenticationSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<ClusterTrust> {
  const isComplete = () => settings.clientCa.value !== undefined && settings.requestHeaderCa.value !== undefined
  const asks = client !== undefined && !settings.skipLookup && !isComplete()
  let published: Published | undefined
  let changed = () => {}
  const look = async () => {
    if (!asks) return
    using limit = deadlineScope({ clock, ms: timeoutMs })
    const found = ((await client.of(configMaps).get(configMap, { signal: limit.signal })).data ?? {}) as Published
    const isNew = JSON.stringify(found) !== JSON.stringify(published)
    published = found
    if (isNew) changed()
  }
  await look().catch((error: Error) => {
    if (!settings.tolerateLookupFailure) throw error
    log.warn('Whose certificates count could not be looked up in the cluster; trying again', { error: error.message })
  })
  return {
    authorities: () => ({
      clientCa: settings.clientCa.value ?? published?.['client-ca-file'],
      requestHeaderCa: settings.requestHeaderCa.value ?? published?.['requestheader-client-ca-file'],
    }),
    requestHeader: () => (settings.requestHeaderCa.value === undefined && published ? headersOf(published) : settings.requestHeader),
    onChange(tell) {
      changed = tell
    },
    async follow(signal) {
      followCertificates([settings.clientCa, settings.requestHeaderCa], () => changed(), log, signal)
      while (asks && !signal.aborted) {
        await clock.sleep(published ? lookEveryMs : retryMs, signal).catch(() => {})
        if (!signal.aborted) await look().catch((error: Error) => log.v(4).info('Whose certificates count could not be looked up', { error: error.message }))
      }
    },
  }
}

function headersOf(published: Published): RequestHeaderSettings {
  const names = (key: string): string[] => {
    const value: unknown = JSON.parse(published[key] ?? '[]')
    return Array.isArray(value) ? value.map(String) : []
  }
  return {
    allowedNames: names('requestheader-allowed-names'),
    usernameHeaders: names('requestheader-username-headers'),
    uidHeaders: names('requestheader-uid-headers'),
    groupHeaders: names('requestheader-group-headers'),
    extraHeaderPrefixes: names('requestheader-extra-headers-prefix'),
  }
}
