/**
 * Long lists in pages (L2): one page in memory at a time, or all of them as one list. When the server has compacted the list's version
 * meanwhile, the remaining pages are lost; the whole list is then requested again. Upstream: client-go/tools/pager (v1.36).
 */
import type { Frozen, KubeList, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ListOptions, ResourceClient } from './client.ts'

const defaultPageSize = 500

/** The whole list. `limit` is the size of a page. */
export async function listAll<T extends KubeObject>(client: ResourceClient<T>, options: ListOptions = {}): Promise<Frozen<KubeList<T>>> {
  const items: Frozen<T>[] = []
  let first: Frozen<KubeList<T>> | undefined
  try {
    for await (const page of listPages(client, options)) {
      if (!first && !page.metadata.continue) return page
      first ??= page
      for (const item of page.items) items.push(item as Frozen<T>)
    }
  } catch (error) {
    if (!first || !(isStatus(error, 'Expired') || isStatus(error, 'Gone'))) throw error
    const { limit: _, continue: __, ...whole } = options
    return client.list(whole)
  }
  const { continue: _, remainingItemCount: __, ...metadata } = first?.metadata ?? {}
  return { ...(first as Frozen<KubeList<T>>), metadata, items: Object.freeze(items) } as Frozen<KubeList<T>>
}

/** Page by page. @throws StatusError Expired when the server forgets the version between two pages. */
export async function* listPages<T extends KubeObject>(client: ResourceClient<T>, options: ListOptions = {}): AsyncGenerator<Frozen<KubeList<T>>> {
  const { resourceVersion: _, resourceVersionMatch: __, ...later } = options
  const limit = options.limit ?? defaultPageSize
  let page = await client.list({ ...options, limit })
  yield page
  // The continue token contains the version.
  for (let next = page.metadata.continue; next; next = page.metadata.continue) {
    page = await client.list({ ...later, limit, continue: next })
    yield page
  }
}
