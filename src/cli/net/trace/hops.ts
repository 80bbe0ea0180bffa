/** Makers of hops (L4), pure. */
import { isNodeReady } from '#api/helpers/nodes'
import type { Cause, Hop, TraceFacts } from './facts.ts'

export const ok = (hop: string, text: string): Hop => ({ hop, state: 'ok', text })
export const unknown = (hop: string, text: string): Hop => ({ hop, state: 'unknown', text })
export const fault = (hop: string, cause: Cause, text: string): Hop => ({ hop, state: 'fault', text, cause })

/** None when the node is well. */
export function nodeHop(nodes: TraceFacts['nodes'], name: string): Hop[] {
  const { found, notShown } = nodes.get(name) ?? {}
  if (notShown !== undefined) return [unknown('node', `${name}: not shown: ${notShown}`)]
  if (!found) return [fault('node', 'node', `the node ${name} does not exist`)]
  if (isNodeReady(found)) return []
  const reason = found.status?.conditions?.find(({ type }) => type === 'Ready')?.message
  return [fault('node', 'node', `the node ${name} is not Ready${reason ? `: ${reason}` : ''}`)]
}
