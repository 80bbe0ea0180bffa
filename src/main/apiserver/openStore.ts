/** Opens the store that the flags of an API server name (L5): an etcd cluster, or a file of the server's own. */
import { X509Certificate } from 'node:crypto'
import path from 'node:path'
import { formatTime } from '#base/time'
import { lockFile } from '#host/fileLock'
import type { LmdbStoreOptions } from '#store/drivers/lmdb'
import type { LocalStore, Store } from '#store/store'
import type { ProcessTools } from '../layouts/processTools.ts'
import type { EtcdSettings } from './options/storage.ts'

/** Time for another process that is ending to close the store. */
const waitForOtherMs = 15_000

/**
 * @param directory of the server's own store; it exists
 * @param signal ends the wait for another process that holds the store
 * @throws Error when the store cannot be opened, or etcd does not answer
 */
export async function openStore(etcd: EtcdSettings | undefined, directory: string, tools: ProcessTools, signal: AbortSignal): Promise<Store> {
  if (!etcd) return openLocalStore(directory, tools, { signal })
  const { openEtcdStore } = await import('#store/drivers/etcd/etcdStore')
  const { clock, random, log } = tools
  try {
    return await openEtcdStore({ ...etcd, clock, random, log: log.with('store') })
  } catch (error) {
    throw new Error(`${(error as Error).message}${hintOn(error as Error, etcd, clock.now())}`, { cause: error })
  }
}

/** Which flag to look at when certificates are the reason. */
function hintOn({ message }: Error, { tls: { cert } }: EtcdSettings, nowMs: number): string {
  const untilMs = cert === undefined ? undefined : Date.parse(new X509Certificate(cert).validTo)
  if (untilMs !== undefined && untilMs < nowMs) return `; the certificate in --etcd-certfile expired at ${formatTime(untilMs)}`
  if (/remote error: tls: /.test(message))
    return cert === undefined
      ? '; etcd asks for a client certificate: give one with --etcd-certfile and --etcd-keyfile'
      : '; etcd accepts no client certificate of this authority: look at --etcd-certfile'
  return /certificate/.test(message)
    ? '; the authority that signed the certificate of etcd is not in --etcd-cafile, or the certificate is for another name'
    : ''
}

export function storeFile(directory: string): string {
  return path.join(directory, 'data.mdb')
}

/** Whether the store is in this process, and not an etcd. */
export function isLocal(store: Store): store is LocalStore {
  return 'snapshot' in store
}

/** Locks the store in a directory, which exists. @returns the function that ends that @throws Error when another process holds it */
export function lockStore(directory: string, { log }: Pick<ProcessTools, 'log'>, signal?: AbortSignal): Promise<() => void> {
  const file = storeFile(directory)
  return lockFile(`${file}-holder`, {
    waitMs: waitForOtherMs,
    signal,
    onWait: (pid) => log.warn('Another process has the store open; waiting', { file, pid }),
    refuse: (pid) => new Error(`another process${pid === undefined ? '' : ` (pid ${pid})`} has the store ${file} open: end it, or use another directory`),
  })
}

/**
 * Opens the store in a directory, which exists, and locks it until the store is closed: two processes would give revisions twice.
 * @throws Error when another process holds the store, or it cannot be opened
 */
export async function openLocalStore(
  directory: string,
  tools: Pick<ProcessTools, 'clock' | 'log'>,
  { quotaBytes, timings, signal }: Pick<LmdbStoreOptions, 'quotaBytes' | 'timings'> & { readonly signal?: AbortSignal } = {},
): Promise<LocalStore> {
  const file = storeFile(directory)
  const { clock, log } = tools
  const [release, { openLmdbStore }] = await Promise.all([lockStore(directory, tools, signal), import('#store/drivers/lmdb')])
  try {
    const store = await openLmdbStore({ path: file, clock, log: log.with('store'), quotaBytes, timings })
    const close = store.close.bind(store)
    store.close = () => close().finally(release)
    return store
  } catch (error) {
    release()
    throw error
  }
}
