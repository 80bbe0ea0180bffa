/**
 * Publishes how extension API servers verify this server and its users (L3): the ConfigMap extension-apiserver-authentication in kube-system.
 * Restored when it is changed or deleted.
 * Upstream: pkg/controlplane/controller/clusterauthenticationtrust.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Logger } from '#base/log'
import type { Transport } from '#client/transport'
import type { RequestHeaderSettings } from '../authn/settings.ts'
import { reconcile } from '../bootstrap/bootstrap.ts'
import type { ObjectReader } from '../core/objectReader.ts'

export interface Trust {
  /** PEM: the authority of users' client certificates. */
  readonly clientCa?: string | undefined
  /** PEM: the authority of the front proxy's certificate. */
  readonly requestHeaderCa?: string | undefined
  /** The trusted proxies and their headers. */
  readonly requestHeader: RequestHeaderSettings
}

const namespace = 'kube-system'
const name = 'extension-apiserver-authentication'
const configMaps = { group: '', resource: 'configmaps' }

export function trustConfigMap({ clientCa, requestHeaderCa, requestHeader: names }: Trust): KubeObject & { data: Record<string, string> } {
  const requestHeader = requestHeaderCa && {
    'requestheader-client-ca-file': requestHeaderCa,
    'requestheader-username-headers': JSON.stringify(names.usernameHeaders),
    'requestheader-uid-headers': JSON.stringify(names.uidHeaders),
    'requestheader-group-headers': JSON.stringify(names.groupHeaders),
    'requestheader-extra-headers-prefix': JSON.stringify(names.extraHeaderPrefixes),
    'requestheader-allowed-names': JSON.stringify(names.allowedNames),
  }
  const data = { ...(clientCa ? { 'client-ca-file': clientCa } : {}), ...(requestHeader || {}) }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data }
}

/** Writes it now. */
export async function publishTrust(transport: Transport, trust: Trust, signal: AbortSignal): Promise<void> {
  await reconcile(transport, `/api/v1/namespaces/${namespace}/configmaps`, trustConfigMap(trust), ['data'], signal)
}

/** Restores it after every change until the signal aborts. */
export async function keepTrust(deps: { reader: ObjectReader; transport: Transport; log: Logger }, trust: Trust, signal: AbortSignal): Promise<void> {
  let wake = () => {}
  let isDue = false
  const stop = deps.reader.onChange<KubeObject>(configMaps, ({ object }) => {
    if (object.metadata.name !== name || object.metadata.namespace !== namespace) return
    isDue = true
    wake()
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  while (!signal.aborted) {
    if (isDue) {
      isDue = false
      await publishTrust(deps.transport, trust, signal).catch((error) => {
        if (!signal.aborted) deps.log.error(error, 'Publishing how this server is trusted failed')
      })
    } else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  stop()
}
