/**
 * Estimates how many seats a request takes (L3): lists by the objects they load, writes by the number of watches that get the event. Pure.
 * Upstream: apiserver/pkg/util/flowcontrol/request (with the gates SizeBasedListCostEstimate and WatchList on).
 */
import type { HistogramSeries } from '#base/metrics'
import type { RequestInfo, ServerRequest } from '../core/request.ts'
import { truthy } from '../core/requestInfo.ts'

export interface WorkEstimate {
  /** Seats while the server works on the request. */
  readonly initialSeats: number
  /** Seats after the answer, for `additionalLatencyMs`, which the client does not wait for. */
  readonly finalSeats: number
  readonly additionalLatencyMs: number
}

export interface ObjectStats {
  readonly objectCount: number
  readonly averageBytes: number
}

export interface WorkEstimator {
  /**
   * @param maxSeats what the priority level allows one request; 0: no separate limit
   * @param watched observes the number of watches that get a write's event
   */
  estimate(request: ServerRequest, maxSeats: number, watched?: HistogramSeries): WorkEstimate
}

export interface WorkEstimatorDeps {
  /** Undefined: this server does not hold the resource. */
  objectStats(info: RequestInfo): ObjectStats | undefined
  watchCount(info: RequestInfo): number
}

const mostListSeats = 100
const mostMutatingSeats = 10
const bytesPerSeat = 100_000
/** Lists from the cache are written in pieces. */
const mostCachedListBytes = 1_000_000
const watchesPerSeat = 10
const eventLatencyMs = 5

const estimates: readonly WorkEstimate[] = Array.from({ length: mostListSeats + 1 }, (_, seats) => seatsOnly(seats))
const oneSeat = seatsOnly(1)

function seatsOnly(initialSeats: number): WorkEstimate {
  return { initialSeats, finalSeats: 0, additionalLatencyMs: 0 }
}

export function createWorkEstimator({ objectStats, watchCount }: WorkEstimatorDeps): WorkEstimator {
  return {
    estimate(request, maxSeats, watched) {
      const { info } = request
      if (!info?.isResourceRequest) return oneSeat
      switch (info.verb) {
        case 'list':
        case 'watch':
          return startsWithNothing(request, info) ? oneSeat : listEstimate(request, info, objectStats(info), maxSeats)
        case 'create':
        case 'update':
        case 'patch':
        case 'delete':
          if (info.resource === 'serviceaccounts' && info.subresource === 'token') return oneSeat
          return mutatingEstimate(counted(watchCount(info), watched), maxSeats)
        default:
          return oneSeat
      }
    },
  }
}

function counted(watches: number, watched: HistogramSeries | undefined): number {
  watched?.observe(watches)
  return watches
}

/** Watches that resume at a resource version, without initial events. */
function startsWithNothing({ query }: ServerRequest, { verb }: RequestInfo): boolean {
  if (verb !== 'watch') return false
  const revision = query.get('resourceVersion') ?? ''
  return revision !== '' && revision !== '0' && !truthy(query.get('sendInitialEvents'))
}

function listEstimate(request: ServerRequest, info: RequestInfo, stats: ObjectStats | undefined, maxSeats: number): WorkEstimate {
  if (!stats) return oneSeat
  const most = maxSeats === 0 ? mostListSeats : Math.min(maxSeats, mostListSeats)
  const seats = Math.ceil(loadedBytes(request, info, stats) / bytesPerSeat)
  return estimates[Math.min(Math.max(seats, 1), most)] as WorkEstimate
}

function loadedBytes({ query }: ServerRequest, info: RequestInfo, { objectCount, averageBytes }: ObjectStats): number {
  if (info.name !== '') return averageBytes
  const limit = Number.parseInt(query.get('limit') ?? '', 10)
  const wanted = limit > 0 ? Math.min(limit, objectCount) : objectCount
  if (info.verb === 'watch' || isFromCache(query, limit > 0)) return Math.min(wanted * averageBytes, mostCachedListBytes)
  const isSelective = (info.fieldSelector ?? '') !== '' || (info.labelSelector ?? '') !== ''
  return averageBytes * (isSelective ? Math.max(wanted, Math.trunc(objectCount / 2)) : wanted)
}

/** Upstream: storage/cacher/delegator ShouldDelegateListMeta. */
function isFromCache(query: URLSearchParams, hasLimit: boolean): boolean {
  const match = query.get('resourceVersionMatch') ?? ''
  if (match !== '') return match === 'NotOlderThan'
  if (query.get('continue')) return false
  const revision = query.get('resourceVersion') ?? ''
  return !hasLimit || revision === '' || revision === '0'
}

/** Many watches are served by more work after the answer; it takes few seats for a longer time, so that other requests still run. */
function mutatingEstimate(watches: number, maxSeats: number): WorkEstimate {
  if (watches < watchesPerSeat) return oneSeat
  const wanted = Math.ceil(watches / watchesPerSeat)
  const finalSeats = Math.min(wanted, maxSeats === 0 ? mostMutatingSeats : Math.min(maxSeats, mostMutatingSeats))
  return { initialSeats: 1, finalSeats, additionalLatencyMs: (wanted * eventLatencyMs) / finalSeats }
}
