/**
 * The lease by which this server is known among those of its store (L3): created when the server is ready, renewed every ten seconds,
 * deleted when it stops. Readiness does not wait for it: admission may refuse or delay every write of a lease.
 * Expired leases of servers that crashed are deleted once an hour.
 * Upstream: pkg/controlplane/apiserver/server.go, pkg/controlplane/controller/apiserverleasegc, component-helpers/apimachinery/lease (v1.36).
 */
import { createHash } from 'node:crypto'
import type { Lease } from '#api/gen/types/coordination.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { base32 } from '#base/base32'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { orAborted } from '#base/orAborted'
import { type Random, randomUid } from '#base/random'
import { formatMicroTime, parseTime } from '#base/time'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import type { ServerWork } from '../core/serverWork.ts'

export interface IdentityLeaseDeps {
  readonly reader: ObjectReader
  /** The server's own. */
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly hostName: string
}

const leases = { group: 'coordination.k8s.io', resource: 'leases' }
const namespace = 'kube-system'
const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
const component = 'kube-apiserver'
const componentLabel = 'apiserver.kubernetes.io/identity'
const durationSeconds = 3600
const renewMs = 10_000
const renewJitter = 0.04
/** A renewal that failed is tried again after this time, and after twice as long each time. */
const firstRetryMs = 200
const longestRetryMs = 7_000
const collectMs = 3_600_000

export function identityLease(deps: IdentityLeaseDeps): ServerWork {
  const { transport, clock, random, log } = deps
  const name = serverId(deps.hostName)
  const holderIdentity = `${name}_${randomUid(random)}`
  let latest: Frozen<Lease> | undefined
  let isStopped = false
  let underWay: Promise<unknown> = Promise.resolve()

  const remove = (one: string, signal: AbortSignal) => transport.request({ method: 'DELETE', path: `${path}/${one}` }, signal).catch(unless('NotFound'))

  async function renew(signal: AbortSignal): Promise<void> {
    const body = renewed(latest, { name, holderIdentity, hostName: deps.hostName, nowMs: clock.now() })
    try {
      const request = latest ? ({ method: 'PUT', path: `${path}/${name}`, body } as const) : ({ method: 'POST', path, body } as const)
      latest = (await transport.request(request, signal)).body as Frozen<Lease>
    } catch (error) {
      // Someone changed or deleted it: the next renewal begins with what is there.
      latest = deps.reader.get<Lease>(leases, namespace, name)
      throw error
    }
  }

  async function collect(signal: AbortSignal): Promise<void> {
    const all = deps.reader.list<Lease>(leases, namespace).filter(({ metadata }) => metadata.labels?.[componentLabel] === component)
    for (const lease of all) if (isExpired(lease, clock.now())) await remove(lease.metadata.name ?? '', signal)
  }

  /** False when it failed. */
  async function renewOrReport(signal: AbortSignal): Promise<boolean> {
    try {
      await renew(signal)
      return true
    } catch (error) {
      if (!signal.aborted && !isStopped) log.v(2).info('Renewing the lease of this API server failed; trying again', { lease: name, error: String(error) })
      return false
    }
  }

  return {
    async run(signal) {
      // The lease of an earlier start. If it stays, the first renewals fail, and then take it over.
      await remove(name, signal).catch((error) => {
        if (!signal.aborted) log.error(error, 'Deleting the lease of an earlier start of this API server failed', { lease: name })
      })
      let collectedMs = clock.monotonicMs()
      let retryMs = firstRetryMs
      while (!signal.aborted && !isStopped) {
        const renewing = renewOrReport(signal)
        underWay = renewing
        const isRenewed = await renewing
        await clock.sleep(isRenewed ? renewMs * (1 + renewJitter * random.next()) : retryMs, signal).catch(() => undefined)
        retryMs = isRenewed ? firstRetryMs : Math.min(2 * retryMs, longestRetryMs)
        if (signal.aborted || isStopped || clock.monotonicMs() - collectedMs < collectMs) continue
        collectedMs = clock.monotonicMs()
        await collect(signal).catch((error) => log.error(error, 'Deleting expired leases of API servers failed; trying again later'))
      }
    },
    async stop(signal) {
      isStopped = true
      // A renewal must not create the lease again.
      await orAborted(underWay, signal)
      await remove(name, signal)
    },
  }
}

/** The same for each start of a server on one host. */
export function serverId(hostName: string): string {
  const prefixed = (text: string) => {
    const bytes = Buffer.from(text)
    return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes])
  }
  const hash = createHash('sha256')
    .update(Buffer.concat([prefixed(hostName), prefixed(component)]))
    .digest()
  return `apiserver-${base32(hash.subarray(0, 16))}`
}

interface Holder {
  readonly name: string
  readonly holderIdentity: string
  readonly hostName: string
  readonly nowMs: number
}

function renewed(latest: Frozen<Lease> | undefined, { name, holderIdentity, hostName, nowMs }: Holder): unknown {
  const labels = { ...latest?.metadata.labels, [componentLabel]: component, 'kubernetes.io/hostname': hostName }
  const spec = { ...(latest?.spec ?? { holderIdentity }), leaseDurationSeconds: durationSeconds, renewTime: formatMicroTime(nowMs) }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...latest?.metadata, name, namespace, labels }, spec }
}

/** A lease without a time or a duration was not written by a server. */
function isExpired({ spec }: Frozen<Lease>, nowMs: number): boolean {
  const renewedMs = parseTime(spec?.renewTime ?? '')
  return renewedMs === undefined || !spec?.leaseDurationSeconds || renewedMs + spec.leaseDurationSeconds * 1000 < nowMs
}

function unless(reason: 'NotFound'): (error: unknown) => undefined {
  return (error) => {
    if (!isStatus(error, reason)) throw error
    return undefined
  }
}
