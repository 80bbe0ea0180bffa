/**
 * Records the use of legacy tokens (L3): the day of last use on the secret, and the day from which use is recorded in a ConfigMap of kube-system,
 * which the controller that deletes unused tokens reads.
 * Upstream: pkg/controlplane/controller/legacytokentracking, patchSecretWithLastUsedDate of pkg/serviceaccount/legacy.go (v1.36).
 */
import type { ConfigMap, Secret } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Transport } from '#client/transport'
import { dayOf, lastUsedLabel } from './legacyClaims.ts'

export const trackingConfigMap = 'kube-apiserver-legacy-service-account-token-tracking'
const configMaps = '/api/v1/namespaces/kube-system/configmaps'

/** Resolves when the ConfigMap holds a date; an invalid one is replaced. @throws Status when the API refuses */
export async function keepTrackingSince(transport: Transport, clock: Clock, signal: AbortSignal): Promise<void> {
  const data = { since: dayOf(clock.now()) }
  try {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: trackingConfigMap, namespace: 'kube-system' }, data }
    await transport.request({ method: 'POST', path: configMaps, body }, signal)
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
    const path = `${configMaps}/${trackingConfigMap}`
    const found = (await transport.request({ method: 'GET', path }, signal)).body as Frozen<ConfigMap>
    if (isDay(found.data?.since ?? '')) return
    await transport.request({ method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { data } }, signal)
  }
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))
}

/** Labels secrets, one patch at a time for each. */
export function secretUseRecorder(transport: () => Transport | undefined, log: Logger): (secret: Frozen<Secret>, day: string) => void {
  const pending = new Set<string>()
  return ({ metadata: { namespace = '', name = '', uid } }, day) => {
    const key = `${namespace}/${name}`
    const to = transport()
    if (!to || pending.has(key)) return
    pending.add(key)
    const request = {
      method: 'PATCH' as const,
      path: `/api/v1/namespaces/${namespace}/secrets/${name}`,
      contentType: 'application/merge-patch+json',
      body: { metadata: { uid, labels: { [lastUsedLabel]: day } } },
    }
    to.request(request)
      .catch((error) => log.error(error, 'Writing down the use of a service account token of a secret failed', { namespace, name }))
      .finally(() => pending.delete(key))
  }
}
