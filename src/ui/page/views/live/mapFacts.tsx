/** What each component on the map does at this moment (L4), from two readings of the metrics, the leases and the nodes. */
import type { ComponentName } from '../../../model/liveMap.ts'
import { sumBy, sumOf } from '../../../model/prometheus.ts'
import type { ListedObject } from '../../live.ts'
import { rounded } from './cards.tsx'
import type { MapFacts } from './map.tsx'
import type { Rates, Reading } from './readings.ts'

export interface Lease extends ListedObject {
  readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string; readonly leaseTransitions?: number }
}

interface Known {
  readonly last: Reading
  readonly rates: readonly Rates[]
  readonly leases: readonly Lease[]
  readonly nodes: { readonly ready: number; readonly all: number }
}

/** Where etcd holds the data. */
function raftRows(store: Reading['store']): [string, string][] {
  if (!store?.raft) return []
  const { isLeader, hasLeader, term, index, appliedIndex } = store.raft
  return [
    ['Raft', `${hasLeader ? (isLeader ? 'asked the leader' : 'asked a follower') : 'no leader'}, term ${term}`],
    ['log', `${appliedIndex} of ${index} applied`],
  ]
}

/** The average time of a request since the start. */
function averageMs(samples: Reading['samples']): number {
  const answered = sumOf(samples, 'apiserver_request_duration_seconds_count')
  return answered === 0 ? 0 : (1000 * sumOf(samples, 'apiserver_request_duration_seconds_sum')) / answered
}

export function factsOf({ last: { samples, store }, rates, leases, nodes }: Known): Readonly<Record<ComponentName, MapFacts>> {
  const rate = rates.at(-1)
  /** Before the second reading, and in a bundle, there are counts since the start, and no rates. */
  const pace = (perSecond: number | undefined, family: string, what = '') =>
    perSecond === undefined ? `${sumOf(samples, family)}${what}` : `${rounded(perSecond)}${what}/s`
  const isAtWork = (perSecond: number | undefined) => (perSecond ?? 0) > 0
  const ofKind = new Map(sumBy(samples, 'apiserver_current_inflight_requests', 'request_kind'))
  const watches = samples.filter(({ name, labels }) => name === 'apiserver_longrunning_requests' && labels.verb === 'WATCH')
  const watchesOf = (resource: string) =>
    sumOf(
      watches.filter(({ labels }) => labels.resource === resource),
      'apiserver_longrunning_requests',
    )
  const [queued, pending] = [sumOf(samples, 'workqueue_depth'), sumOf(samples, 'scheduler_pending_pods')]
  const leader = (name: string) => leases.find(({ metadata }) => metadata?.name === name)?.spec?.holderIdentity || 'no election'
  const revision = store?.revision ?? '–'
  const grownKib = ((rates.at(-1)?.storeBytes ?? 0) - (rates[0]?.storeBytes ?? 0)) / 1024
  return {
    clients: {
      ...{ title: 'Clients', main: pace(rate?.requests, 'apiserver_request_total', ' requests'), isBusy: isAtWork(rate?.requests) },
      rows: [['open streams', sumOf(samples, 'apiserver_longrunning_requests')]],
    },
    apiServer: {
      ...{ title: 'API server', main: `${rounded(rate?.averageMs ?? averageMs(samples))} ms each`, isBusy: isAtWork(rate?.requests) },
      rows: [
        ['in flight', `${ofKind.get('mutating') ?? 0} writes, ${ofKind.get('readOnly') ?? 0} reads`],
        ...(rate ? [['CPU', `${rounded(100 * rate.cpu)} %`] as const] : []),
      ],
    },
    store: {
      ...{ title: 'Store', main: rate ? `${rounded(rate.writes)} writes/s` : `revision ${revision}`, isBusy: isAtWork(rate?.writes) },
      rows: [
        ...(rate ? [['revision', revision] as const] : []),
        ['size', `${rounded(sumOf(samples, 'apiserver_storage_size_bytes') / 2 ** 20)} MiB`],
        ...raftRows(store),
        ...(rate ? [['grown', `${grownKib >= 0 ? '+' : ''}${rounded(grownKib)} KiB in ${2 * rates.length} s`] as const] : []),
      ],
    },
    watchCache: {
      ...{ title: 'Watch cache', main: pace(rate?.events, 'apiserver_storage_events_received_total', ' events'), isBusy: isAtWork(rate?.events) },
      rows: [
        ['watches', sumOf(watches, 'apiserver_longrunning_requests')],
        ['of pods', watchesOf('pods')],
      ],
    },
    controllers: {
      ...{ title: 'Controllers', main: `${queued} queued`, isBusy: queued > 0 || isAtWork(rate?.reconciles) },
      rows: [
        ['reconciles', pace(rate?.reconciles, 'workqueue_work_duration_seconds_count')],
        ['leader', leader('kube-controller-manager')],
      ],
    },
    scheduler: {
      ...{ title: 'Scheduler', main: `${pending} pods wait`, isBusy: pending > 0 || isAtWork(rate?.attempts) },
      rows: [
        ['attempts', pace(rate?.attempts, 'scheduler_schedule_attempts_total')],
        ['leader', leader('kube-scheduler')],
      ],
    },
    kubelets: {
      ...{ title: 'Kubelets', main: `${nodes.ready} of ${nodes.all} ready`, isBusy: nodes.ready > 0 },
      rows: [['watches of Secrets and ConfigMaps', watchesOf('secrets') + watchesOf('configmaps')]],
    },
    proxy: {
      ...{ title: 'Proxy and DNS', main: `${watchesOf('endpointslices')} watches`, isBusy: watchesOf('endpointslices') > 0 },
      rows: [['of', 'EndpointSlices']],
    },
  }
}
