/** To which nodes the driver has published each volume, by what it lists (L3). Upstream: external-attacher, pkg/attacher/lister.go. */
import type { CsiConnection } from './driver.ts'

/** A driver that lists without end is not followed for longer. */
export const maxPages = 10_000

/** By volume id. @throws GrpcError, and Error for a list without end */
export async function publishedNodes(connection: CsiConnection, timeoutMs: number, signal: AbortSignal): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, ReadonlySet<string>>()
  let startingToken = ''
  for (let page = 0; page < maxPages; page++) {
    const { entries, nextToken } = await connection.call('listVolumes', { startingToken }, timeoutMs, signal)
    for (const { volume, status } of entries) if (volume) found.set(volume.volumeId, new Set(status?.publishedNodeIds))
    if (!nextToken) return found
    startingToken = nextToken
  }
  throw new Error(`the driver's list of volumes has more than ${maxPages} pages`)
}
