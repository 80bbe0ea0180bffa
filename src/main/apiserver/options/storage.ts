/**
 * Where and how objects are stored (L5): in a file of this server's own, or in an etcd cluster. Upstream: apiserver/pkg/server/options/etcd.go (v1.36).
 */
import { expectedHistory, expectedHistorySize, isHistory, isHistorySize, longestHistoryMs } from '#api/debug/revisions'
import { formatDuration } from '#api/machinery/duration'
import { quantityValue } from '#api/machinery/quantity'
import type { HistoryLimits } from '#apiserver/registry/history'
import { type StorageMediaType, storageMediaTypes } from '#apiserver/registry/storedForm'
import type { FlagValues } from './flags.ts'
import { duration, flag, list, text, UsageError, whole } from './flags.ts'
import { readNamed } from './namedFiles.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'

const withoutEffect = 'Accepted, without effect'
const defaultPollMs = 30_000
const ofCache = 'Accepted, without effect: what is watched is held whole, once'

/** An etcd cluster that stores the objects. */
export interface EtcdSettings {
  readonly endpoints: readonly string[]
  readonly prefix: string
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** The form of built-in kinds. */
  readonly mediaType: StorageMediaType
}

const flags = {
  'delete-collection-workers': whole('Accepted, without effect: the objects of a collection are deleted as fast as writes are taken', 1),
  'enable-garbage-collector': flag('Only true: owners that wait for what they own, or leave it, always can', true),
  'etcd-cafile': text('The authorities that sign the certificates of the servers of etcd'),
  'etcd-certfile': text('The client certificate that etcd asks for'),
  'etcd-compaction-interval': duration('At this interval, history that is older than it is compacted; 0: never', 300_000),
  'etcd-count-metric-poll-period': duration('Only 0 matters: objects are not counted. Otherwise each scrape of /metrics has the present counts', 60_000),
  'etcd-db-metric-poll-interval': duration(
    'Accepted, without effect: v1.36 hides its metric, and apiserver_storage_size_bytes is read at each scrape',
    defaultPollMs,
  ),
  'etcd-healthcheck-timeout': duration('How long the store may take to answer the health check `etcd`', 2000),
  'etcd-keyfile': text('The key of the client certificate'),
  'etcd-prefix': text('Where the keys of the objects begin in etcd', '/registry'),
  'etcd-readycheck-timeout': duration('How long the store may take to answer the readiness check `etcd-readiness`', 2000),
  'etcd-servers': list('Members of the etcd cluster that stores the objects (scheme://host:port); empty: they are stored in a file below --data-dir'),
  'etcd-servers-overrides': list('Must be empty: one cluster stores all resources'),
  'event-ttl': duration('How long events are kept', 3_600_000),
  history: duration('How long replaced and deleted versions can be read (skiff at, history, diff), instead of the compaction interval; 0: not longer', 0),
  'history-size': text(
    'The most that replaced versions may take, such as 400Mi: beyond, the oldest are given up; of an etcd, all that it stores (default: 400Mi)',
  ),
  'lease-reuse-duration-seconds': whole('Objects that expire, such as events, share a lease when they are written within this time', 60),
  'storage-backend': text('Empty or etcd3'),
  'storage-initialization-timeout': duration(withoutEffect, 60_000),
  'storage-media-type': text(
    `The form of built-in kinds in etcd: ${storageMediaTypes.join(', ')}; custom resources, their definitions and APIServices are JSON, as everything in a file of the server is`,
    'application/vnd.kubernetes.protobuf',
  ),
  'watch-cache': flag(ofCache, true),
  'watch-cache-sizes': list(ofCache),
} as const

export const storage = optionGroup({
  name: 'Storage',
  flags,
  async settings(values, context) {
    const backend = values['storage-backend']
    const mediaType = values['storage-media-type'] || 'application/json'
    const faults = [
      ...etcdFaults(values),
      ...(['', 'etcd3'].includes(backend) ? [] : [`--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'`]),
      ...(isMediaType(mediaType) ? [] : [`--storage-media-type "${mediaType}" invalid, allowed values: ${storageMediaTypes.join(', ')}`]),
      ...(values['etcd-compaction-interval'] >= 0 ? [] : ['--etcd-compaction-interval must not be negative']),
      ...(values['etcd-count-metric-poll-period'] >= 0 ? [] : ['--etcd-count-metric-poll-period must not be negative']),
      ...historyFaults(values),
      ...(values['event-ttl'] >= 1000 ? [] : ['--event-ttl must be at least one second']),
      ...(values['lease-reuse-duration-seconds'] >= 0 ? [] : ['--lease-reuse-duration-seconds must not be negative']),
      ...(values['enable-garbage-collector'] ? [] : ['--enable-garbage-collector=false is not there: owners that wait for what they own could never go']),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {
      /** About flags without effect. */
      warnings: effectless(values),
      eventTtlSeconds: Math.floor(values['event-ttl'] / 1000),
      leaseReuseSeconds: values['lease-reuse-duration-seconds'],
      compactionIntervalMs: values['etcd-compaction-interval'],
      countsObjects: values['etcd-count-metric-poll-period'] > 0,
      history: historyOf(values),
      storeCheckTimes: { healthMs: values['etcd-healthcheck-timeout'], readyMs: values['etcd-readycheck-timeout'] },
      etcd: isMediaType(mediaType) && values['etcd-servers'].length > 0 ? { ...(await etcdSettings(values, context)), mediaType } : undefined,
    }
  },
})

function isMediaType(name: string): name is StorageMediaType {
  return (storageMediaTypes as readonly string[]).includes(name)
}

type StorageValues = FlagValues<typeof flags>

/** One line for each flag that asks for what is not there. */
function effectless(values: StorageValues): string[] {
  return [
    ...(values['watch-cache-sizes'].length === 0 ? [] : ['--watch-cache-sizes has no effect: the watch cache holds each resource whole, once']),
    ...(values['etcd-db-metric-poll-interval'] === defaultPollMs
      ? []
      : ['--etcd-db-metric-poll-interval has no effect: read apiserver_storage_size_bytes, which each scrape reads']),
  ]
}

const defaultHistoryBytes = 400 * 2 ** 20

function historyFaults({ history, 'history-size': size }: StorageValues): string[] {
  return [
    ...(isHistory(formatDuration(history)) ? [] : [`--history must be 0, or ${expectedHistory}`]),
    ...(size === '' || isHistorySize(size) ? [] : [`--history-size "${size}" must be ${expectedHistorySize}`]),
  ]
}

/** Undefined: the compaction interval decides. */
function historyOf({ history, 'history-size': size }: StorageValues): HistoryLimits | undefined {
  if (history === 0 && size === '') return undefined
  return { keepMs: history === 0 ? longestHistoryMs : history, maxBytes: size === '' ? defaultHistoryBytes : quantityValue(size) }
}

function etcdFaults(values: StorageValues): string[] {
  const { 'etcd-servers': servers, 'etcd-certfile': cert, 'etcd-keyfile': key } = values
  const ofFiles = (['etcd-cafile', 'etcd-certfile', 'etcd-keyfile'] as const).filter((name) => values[name] !== '')
  return [
    ...(values['etcd-servers-overrides'].length > 0 ? ['--etcd-servers-overrides: one cluster stores all resources: leave it out'] : []),
    ...(servers.length === 0 ? ofFiles.map((name) => `--${name} must be set with --etcd-servers`) : []),
    ...servers.filter((url) => !isEndpoint(url)).map((url) => `--etcd-servers: "${url}" must be http://HOST:PORT or https://HOST:PORT`),
    ...((cert === '') === (key === '') ? [] : ['--etcd-certfile and --etcd-keyfile must be set together']),
  ]
}

function isEndpoint(url: string): boolean {
  return /^https?:\/\//.test(url) && URL.canParse(url)
}

async function etcdSettings(values: StorageValues, context: OptionContext): Promise<Omit<EtcdSettings, 'mediaType'>> {
  const read = (name: 'etcd-cafile' | 'etcd-certfile' | 'etcd-keyfile') => readNamed(values[name], context)
  const [ca, cert, key] = [await read('etcd-cafile'), await read('etcd-certfile'), await read('etcd-keyfile')]
  const tls = { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) }
  return { endpoints: values['etcd-servers'], prefix: values['etcd-prefix'], tls }
}
