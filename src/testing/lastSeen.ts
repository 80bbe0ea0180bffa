/**
 * Remembers the objects that a test's check reads, and describes them when the check never holds: their conditions, their events, and what
 * controllers logged meanwhile.
 */
import type { Event } from '#api/gen/types/core.v1'
import type { Frozen, KubeList, KubeObject } from '#api/machinery/meta'
import { keyOf } from '#api/machinery/meta'
import { events } from '#client/builtIn'
import type { Client } from '#client/client'
import type { ApiRequest } from '#client/transport'

const maxObjects = 5
const maxEvents = 5
const maxComplaints = 10

interface Condition {
  readonly type?: string
  readonly status?: string
  readonly reason?: string
  readonly message?: string
}

type Seen = Frozen<KubeObject> & { readonly status?: { readonly phase?: string; readonly conditions?: readonly Condition[] } }

export class LastSeen {
  readonly #objects = new Map<string, Seen>()

  /** Forgets what an earlier check read. */
  clear(): void {
    this.#objects.clear()
  }

  /** Takes the answer of a request for one object or a list. */
  note({ method }: ApiRequest, body: unknown): void {
    if (method !== 'GET' || typeof body !== 'object' || body === null || !('metadata' in body)) return
    const { items } = body as Partial<Frozen<KubeList<KubeObject>>>
    for (const object of items ?? [body as Seen]) {
      if (!object.metadata?.name || this.#objects.size >= maxObjects) continue
      this.#objects.set(`${object.kind} ${keyOf(object)}`, object)
    }
  }

  /** @returns one line for each fact; empty when the check read nothing and nothing was logged */
  async describe(client: Client, complaints: readonly string[]): Promise<string> {
    const objects = [...this.#objects]
    const lines = await Promise.all(
      objects.map(async ([name, object]) => {
        const about = await eventsOf(client, object)
        return [`last seen: ${name}${stateOf(object)}`, ...conditionsOf(object), ...about].join('\n')
      }),
    )
    return [...lines, ...complaints.slice(-maxComplaints).map((complaint) => `logged: ${complaint}`)].join('\n')
  }
}

function stateOf({ metadata, status }: Seen): string {
  const phase = status?.phase === undefined ? '' : `, phase ${status.phase}`
  return metadata.deletionTimestamp === undefined ? phase : `${phase}, being deleted`
}

function conditionsOf({ status }: Seen): string[] {
  return (status?.conditions ?? []).map(
    ({ type, status: value, reason, message }) => `  ${type}=${value}${reason ? ` (${reason})` : ''}${message ? `: ${message}` : ''}`,
  )
}

async function eventsOf(client: Client, { metadata }: Seen): Promise<string[]> {
  try {
    const { items } = await client.of(events).list({ namespace: metadata.namespace ?? 'default', fieldSelector: `involvedObject.uid=${metadata.uid ?? ''}` })
    return items.slice(-maxEvents).map((event: Frozen<Event>) => `  event ${event.type} ${event.reason}: ${event.message}`)
  } catch (error) {
    return [`  its events could not be read: ${String(error)}`]
  }
}
