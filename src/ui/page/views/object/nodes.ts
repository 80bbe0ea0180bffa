/** What nodes say about themselves in node.skiff.dev (L4): one answer for each node, with the reason where there is none. */
import { get, messageOf } from '../../api.ts'
import type { AnyObject } from './types.ts'

export interface OfNode<T> {
  readonly node: string
  readonly found?: T
  /** Why the node does not show it. */
  readonly error?: string
}

/** Each node is asked by itself: more would be a flood. */
export const mostNodes = 24

export async function nodeNames(signal: AbortSignal): Promise<{ readonly names: readonly string[]; readonly isCut: boolean }> {
  const { items, metadata } = await get<{ items: readonly AnyObject[]; metadata?: { continue?: string } }>(`/api/v1/nodes?limit=${mostNodes}`, { signal })
  return { names: items.map(({ metadata: { name = '' } }) => name), isCut: Boolean(metadata?.continue) }
}

interface Told {
  readonly note?: string
  readonly error?: string
}

export async function viewOf<T>(view: string, node: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<OfNode<T>> {
  try {
    const path = `/apis/node.skiff.dev/v1alpha1/${view}/${encodeURIComponent(node)}?${new URLSearchParams(query)}`
    const found = await get<T & Told>(path, { signal })
    const error = found.error ?? found.note
    return { node, found, ...(error ? { error } : {}) }
  } catch (error) {
    return { node, error: messageOf(error) }
  }
}
