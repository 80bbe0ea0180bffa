/** The view `noderoutes` (L3): the routes and neighbours of a node's kernel that belong to the pod network, compared with those that its agent wants. */
import { type NodeRoutes, routeStates } from '#api/debug/nodeNetwork'
import { bareMap } from '#base/bareMap'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, networkNote, struct, text, viewSchema, withNote } from './nodeView.ts'

const route = struct('NodeRoute', [
  field('cidr', 1, text),
  field('via', 2, text, false),
  field('device', 3, text, false),
  field('state', 4, { ...text, enum: [...routeStates] }),
])

const neighbour = struct('NodeNeighbour', [
  field('address', 1, text),
  field('device', 2, text, false),
  field('linkAddress', 3, text, false),
  field('state', 4, text),
])

const count = (state: (typeof routeStates)[number]) => ({
  name: `${state.charAt(0).toUpperCase()}${state.slice(1)}`,
  type: 'integer',
  value: ({ routes = [] }: NodeRoutes) => routes.filter((one) => one.state === state).length,
})

export const nodeRoutesView: NodeView = {
  resource: 'noderoutes',
  kind: 'NodeRoutes',
  schema: viewSchema('NodeRoutes', [
    field('mode', 2, text, false),
    field('note', 3, text, false),
    field('podCIDRs', 4, listOf(text), false),
    field('routes', 5, listOf(route), false),
    field('neighbours', 6, listOf(neighbour), false),
  ]),
  columns: [nameColumn, { name: 'Mode', type: 'string', value: ({ mode = '' }: NodeRoutes) => mode }, ...routeStates.map(count), errorColumn],
  texts: bareMap({
    '': 'NodeRoutes is what the kernel of a node has of the pod network. It has the name of the node.',
    mode: 'How packets get to the pods of other nodes.',
    note: 'Why routes are not shown.',
    podCIDRs: 'The ranges of the pods of this node.',
    routes: 'Routes that the kernel has or should have.',
    neighbours: 'Link addresses that the kernel knows of other nodes and of pods.',
    error: errorText,
  }),
  parts: [
    {
      schema: route,
      texts: bareMap({
        '': 'NodeRoute is one route.',
        state:
          'present: as wanted; missing: the agent wants it and the kernel does not have it; foreign: another program made it; local: leads to a pod of this node.',
      }),
    },
    {
      schema: neighbour,
      texts: bareMap({
        '': 'NodeNeighbour is one entry of the neighbour table.',
        linkAddress: 'Absent: unknown.',
        state: 'As the kernel calls it, such as REACHABLE.',
      }),
    },
  ],
  compute: withNote(async (view) => (await view.context()?.nodeNetwork?.routes?.()) ?? { note: networkNote(view, 'no network agent') }),
}
