/**
 * Marks auto-generated token secrets that have been unused for long as invalid, and deletes them when they stay unused after that (L3).
 * Upstream: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go (v1.36).
 */
import type { Secret, ServiceAccount } from '#api/gen/types/core.v1'
import { podSecretNames } from '#api/helpers/objectReferences'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { formatTime, parseTime } from '#base/time'
import { configMaps, pods, secrets, serviceAccounts } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, everyPeriod } from '../framework/reconciler.ts'
import { accountNameAnnotation, isTokenOf, isTokenSecret } from './tokenSecret.ts'

export interface LegacyCleanerOptions {
  /** Unused tokens older than this are deleted. Default a year. */
  readonly legacyTokenCleanUpPeriodMs?: number | undefined
}

export const legacyTokenCleaner: ControllerDescriptor<LegacyCleanerOptions> = {
  name: 'legacy-serviceaccount-token-cleaner-controller',
  aliases: ['legacy-service-account-token-cleaner'],
  serviceAccount: 'legacy-service-account-token-cleaner',
  create: createCleaner,
}

const dayMs = 24 * 3_600_000
const defaultCleanUpPeriodMs = 365 * dayMs
const lastUsedLabel = 'kubernetes.io/legacy-token-last-used'
const invalidSinceLabel = 'kubernetes.io/legacy-token-invalid-since'
const tracking = { namespace: 'kube-system', name: 'kube-apiserver-legacy-service-account-token-tracking' }

const dayOf = (ms: number) => formatTime(ms).slice(0, 10)
const msOfDay = (day: string | undefined) => (day !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(day) ? parseTime(`${day}T00:00:00Z`) : undefined)

function createCleaner(context: ControllerContext, { legacyTokenCleanUpPeriodMs: cleanUpPeriodMs = defaultCleanUpPeriodMs }: LegacyCleanerOptions) {
  const { client, clock, log } = context
  const informer = context.informers.of(secrets)
  const accounts = context.informers.of(serviceAccounts)
  const podInformer = context.informers.of(pods)
  const reconciler = createReconciler(context, { name: legacyTokenCleaner.name, workers: 0, reconcile: async () => undefined })
  for (const one of [informer, accounts, podInformer] as const) reconciler.needs<never>(one as never)
  reconciler.also((signal) => everyPeriod(context, legacyTokenCleaner.name, dayMs, () => clean(signal), signal))
  return reconciler

  async function clean(signal: AbortSignal): Promise<void> {
    const nowMs = clock.now()
    const { data } = await client.of(configMaps).get(tracking, { signal })
    const sinceMs = msOfDay(data?.since)
    if (sinceMs === undefined) throw new Error(`${tracking.name} does not say since when tokens are tracked`)
    // The first day may have been short.
    if (nowMs < sinceMs + dayMs + cleanUpPeriodMs) return
    for (const secret of informer.store.list()) {
      const { namespace = '', annotations } = secret.metadata
      const account = accounts.lister.get({ namespace, name: annotations?.[accountNameAnnotation] ?? '' })
      const isMounted = () => podInformer.lister.list({ namespace }).some((pod) => podSecretNames(pod).includes(secret.metadata.name ?? ''))
      const decision = legacyTokenDecision(secret, account, nowMs, cleanUpPeriodMs)
      if (decision === 'keep' || isMounted()) continue
      await carryOut(decision, secret, signal).catch((error: unknown) => {
        if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) return
        log.error(error, 'Cleaning up a legacy service account token failed', { namespace, name: secret.metadata.name })
      })
    }
  }

  async function carryOut(decision: 'mark' | 'delete', { metadata }: Frozen<Secret>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid, resourceVersion } = metadata
    if (decision === 'delete') return client.of(secrets).delete({ namespace, name }, { preconditions: { resourceVersion }, signal })
    const labels = { [invalidSinceLabel]: dayOf(clock.now()) }
    await client.of(secrets).patch({ namespace, name }, 'merge', { metadata: { uid, labels } }, { signal })
  }
}

/** What to do with a secret, pods apart: only tokens that their account names are known to be made automatically. */
export function legacyTokenDecision(
  secret: Frozen<Secret>,
  account: Frozen<ServiceAccount> | undefined,
  nowMs: number,
  periodMs: number,
): 'keep' | 'mark' | 'delete' {
  const { name, labels = {}, creationTimestamp, deletionTimestamp } = secret.metadata
  if (!isTokenSecret(secret) || deletionTimestamp || (parseTime(creationTimestamp ?? '') ?? nowMs) >= nowMs - periodMs) return 'keep'
  if (!account || !isTokenOf(secret, account) || !account.secrets?.some((one) => one.name === name)) return 'keep'
  const usedLast = labels[lastUsedLabel]
  // A label that is not a date is ignored.
  if (usedLast !== undefined && (msOfDay(usedLast) === undefined || usedLast >= dayOf(nowMs - periodMs))) return 'keep'
  const invalidSince = labels[invalidSinceLabel]
  if (msOfDay(invalidSince) === undefined) return 'mark'
  return (invalidSince ?? '') >= dayOf(nowMs - periodMs) ? 'keep' : 'delete'
}
