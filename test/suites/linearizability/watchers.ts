/** Clients that follow a collection as informers do, and what must be true of the events that they get: each change once, in order, without a gap. */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type Operation, type Server } from './clients.ts'

export interface Watched {
  /** The revision of each change, with the value behind it; empty: deleted. */
  readonly changes: ReadonlyMap<number, { readonly key: string; readonly value: string }>
  /** Revisions that no watch had to show: a list replaced them. From (exclusive) and to (inclusive). */
  readonly listed: readonly (readonly [from: number, to: number])[]
  readonly objects: ReadonlyMap<string, string>
  readonly faults: readonly string[]
}

const collection = '/api/v1/namespaces/default/configmaps'

interface Item {
  readonly metadata: { readonly name: string; readonly resourceVersion: string }
  readonly data: { readonly value: string }
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: Item & { readonly code?: number }
}

/** Follows the collection until the signal aborts; a watch that breaks resumes after the last revision. */
export function follow(server: Server, signal: AbortSignal): { readonly watched: Watched; readonly done: Promise<void> } {
  const changes = new Map<number, { key: string; value: string }>()
  const [listed, faults]: [(readonly [number, number])[], string[]] = [[], []]
  let objects = new Map<string, string>()
  let revision = 0
  const agent = new https.Agent({ keepAlive: true, ca: server.ca, cert: server.cert, key: server.key })
  const list = async () => {
    const answer = await ask(agent, server.port, 'GET', collection)
    if (answer?.status !== 200) return false
    const to = Number(answer.json.metadata.resourceVersion)
    if (to < revision) faults.push(`a list at revision ${to} follows revision ${revision}`)
    listed.push([revision, to])
    revision = to
    objects = new Map(answer.json.items.map((item: Item) => [item.metadata.name, item.data.value]))
    return true
  }
  /** @returns whether the history that it needs is compacted */
  const take = ({ type, object }: WatchEvent): boolean => {
    if (type === 'ERROR') return object.code === 410
    const at = Number(object.metadata.resourceVersion)
    if (type === 'BOOKMARK') {
      revision = Math.max(revision, at)
      return false
    }
    if (at <= revision) faults.push(`${type} of ${object.metadata.name} at revision ${at} follows revision ${revision}`)
    const { name: key } = object.metadata
    revision = at
    changes.set(at, { key, value: type === 'DELETED' ? '' : object.data.value })
    if (type === 'DELETED') objects.delete(key)
    else objects.set(key, object.data.value)
    return false
  }
  const run = async () => {
    let isListed = false
    while (!signal.aborted) {
      isListed ||= await list()
      if (isListed && (await watch(agent, server.port, `${collection}?watch=1&allowWatchBookmarks=true&resourceVersion=${revision}`, take, signal)))
        isListed = false
      await sleep(50)
    }
    agent.destroy()
  }
  return {
    watched: {
      ...{ changes, listed, faults },
      get objects() {
        return objects
      },
    },
    done: run(),
  }
}

/** @returns what `take` says of the last event */
function watch(agent: https.Agent, port: number, path: string, take: (event: WatchEvent) => boolean, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = https.request({ host: '127.0.0.1', port, agent, path, signal }, async (response) => {
      if (response.statusCode !== 200) {
        response.resume()
        resolve(response.statusCode === 410)
        return
      }
      let rest = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (!take(JSON.parse(line))) continue
          resolve(true)
          sent.destroy()
          return
        }
      })
      for (const event of ['error', 'close'] as const) response.once(event, () => resolve(false))
    })
    sent.on('error', () => resolve(false))
    sent.end()
  })
}

/** What the watch should have shown and did not. @param list the objects, read after the last change that the watch has shown */
export function faultsOf({ changes, listed, objects, faults }: Watched, history: readonly Operation[], list: ReadonlyMap<string, string>): string[] {
  const isListed = (revision: number) => listed.some(([from, to]) => revision > from && revision <= to)
  const missing = history.flatMap(({ answer, revision, key, value }) => {
    if (answer !== 'ok' || revision === undefined) return []
    const change = changes.get(revision)
    if (change?.key === key && change.value === value) return []
    return !change && isListed(revision)
      ? []
      : [`the write of ${key} at revision ${revision} is ${change ? `shown as ${JSON.stringify(change)}` : 'not shown'}`]
  })
  const shown = JSON.stringify([...objects].sort())
  const wanted = JSON.stringify([...list].sort())
  return [...faults, ...missing, ...(shown === wanted ? [] : [`the watch ends with ${shown}, a list with ${wanted}`])]
}
