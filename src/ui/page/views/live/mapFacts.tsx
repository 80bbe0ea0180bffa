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

const none: Rates = { requests: 0, writes: 0, events: 0, reconciles: 0, attempts: 0, cpu: 0, averageMs: 0, storeBytes: 0 }

/** Where etcd holds the data. */
function raftRows(store: Reading['store']): [string, string][] {
  if (!store?.raft) return []
  const { isLeader, hasLeader, term, index, appliedIndex } = store.raft
  return [
    ['Raft', `${hasLeader ? (isLeader ? 'asked the leader' : 'asked a follower') : 'no leader'}, term ${term}`],
    ['log', `${appliedIndex} of ${index} applied`],
  ]
}

export function factsOf({ last: { samples, store }, rates, leases, nodes }: Known): Readonly<Record<ComponentName, MapFacts>> {
  const rate = rates.at(-1) ?? none
  const ofKind = new Map(sumBy(samples, 'apiserver_current_inflight_requests', 'request_kind'))
  const watches = samples.filter(({ name, labels }) => name === 'apiserver_longrunning_requests' && labels.verb === 'WATCH')
  const watchesOf = (resource: string) =>
    sumOf(
      watches.filter(({ labels }) => labels.resource === resource),
      'apiserver_longrunning_requests',
    )
  const [queued, pending] = [sumOf(samples, 'workqueue_depth'), sumOf(samples, 'scheduler_pending_pods')]
  const leader = (name: string) => leases.find(({ metadata }) => metadata?.name === name)?.spec?.holderIdentity || 'no election'
  const grownKib = ((rates.at(-1)?.storeBytes ?? 0) - (rates[0]?.storeBytes ?? 0)) / 1024
  return {
    clients: {
      ...{ title: 'Clients', main: `${rounded(rate.requests)} requests/s`, isBusy: rate.requests > 0 },
      rows: [['open streams', sumOf(samples, 'apiserver_longrunning_requests')]],
    },
    apiServer: {
      ...{ title: 'API server', main: `${rounded(rate.averageMs)} ms each`, isBusy: rate.requests > 0 },
      rows: [
        ['in flight', `${ofKind.get('mutating') ?? 0} writes, ${ofKind.get('readOnly') ?? 0} reads`],
        ['CPU', `${rounded(100 * rate.cpu)} %`],
      ],
    },
    store: {
      ...{ title: 'Store', main: `${rounded(rate.writes)} writes/s`, isBusy: rate.writes > 0 },
      rows: [
        ['revision', store?.revision ?? '–'],
        ['size', `${rounded(rate.storeBytes / 2 ** 20)} MiB`],
        ...raftRows(store),
        ['grown', `${grownKib >= 0 ? '+' : ''}${rounded(grownKib)} KiB in ${2 * rates.length} s`],
      ],
    },
    watchCache: {
      ...{ title: 'Watch cache', main: `${rounded(rate.events)} events/s`, isBusy: rate.events > 0 },
      rows: [
        ['watches', sumOf(watches, 'apiserver_longrunning_requests')],
        ['of pods', watchesOf('pods')],
      ],
    },
    controllers: {
      ...{ title: 'Controllers', main: `${queued} queued`, isBusy: queued > 0 || rate.reconciles > 0 },
      rows: [
        ['reconciles', `${rounded(rate.reconciles)}/s`],
        ['leader', leader('kube-controller-manager')],
      ],
    },
    scheduler: {
      ...{ title: 'Scheduler', main: `${pending} pods wait`, isBusy: pending > 0 || rate.attempts > 0 },
      rows: [
        ['attempts', `${rounded(rate.attempts)}/s`],
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
