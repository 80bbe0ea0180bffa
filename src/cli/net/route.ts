/** `skiff net route` (L4): the routes and neighbours of each node's kernel that belong to the pod network, and those that are missing or foreign. */
import type { NodeRoutes } from '#api/debug/nodeNetwork'
import type { KubeObject } from '#api/machinery/meta'
import { table } from '../commands/status.ts'
import { paths, type Reader, type Seen } from './reader.ts'

export type FoundRoutes = Seen<readonly (NodeRoutes & { readonly node: string; readonly error?: string | undefined })[]>

export async function findRoutes(reader: Reader, node: string | undefined): Promise<FoundRoutes> {
  type Item = KubeObject & NodeRoutes & { readonly error?: string }
  const { found, notShown } = node === undefined ? await reader.list<Item>(paths.view('noderoutes')) : await one<Item>(reader, node)
  if (!found) return { notShown: notShown ?? 'there is no such node, or the server has no views of nodes' }
  return { found: found.map(({ metadata, kind: _, apiVersion: __, ...rest }) => ({ node: metadata.name ?? '', ...rest })) }
}

async function one<T>(reader: Reader, node: string): Promise<Seen<readonly T[]>> {
  const { found, notShown } = await reader.get<T>(paths.view('noderoutes', node))
  return found ? { found: [found] as never } : { notShown }
}

export function describeRoutes({ found, notShown }: FoundRoutes): string {
  if (!found) return `routes: not shown: ${notShown}\n`
  return found.map(nodeText).join('\n')
}

function nodeText({ node, mode, note, error, podCIDRs = [], routes = [], neighbours = [] }: NonNullable<FoundRoutes['found']>[number]): string {
  if (mode === undefined) return `${node}: not shown: ${error ?? note ?? 'the node says nothing'}\n`
  const local = routes.filter(({ state }) => state === 'local').length
  const head = `${node}: pods ${podCIDRs.join(', ') || 'none'}, mode ${mode}, routes to its own pods: ${local}\n`
  const shown = routes.filter(({ state }) => state !== 'local')
  const rows = shown.map(({ cidr, via = '-', device = '-', state }) => [`  ${cidr}`, via, device, state === 'present' ? state : state.toUpperCase()])
  const near = neighbours.map(({ address, device = '-', linkAddress = '-', state }) => [`  ${address}`, device, linkAddress, state])
  return [
    head,
    rows.length > 0 ? table([['  ROUTE', 'VIA', 'DEVICE', 'STATE'], ...rows]) : '  no routes to other nodes\n',
    near.length > 0 ? table([['  NEIGHBOUR', 'DEVICE', 'LINK ADDRESS', 'STATE'], ...near]) : '',
  ].join('')
}
