/** The view `servicerules` (L3): how the service proxy of a node carries one Service, which the parameter `service` names: its rules in the kernel, as text. */
import type { NodeServiceRules } from '#api/debug/nodeNetwork'
import { bareMap } from '#base/bareMap'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, networkNote, struct, text, viewSchema, withNote } from './nodeView.ts'

const rule = struct('ServiceRule', [
  field('place', 1, text),
  field('lines', 2, listOf(text), false),
  field('connections', 3, { type: 'integer', format: 'int64' }, false),
])

export const serviceRulesView: NodeView = {
  resource: 'servicerules',
  kind: 'ServiceRules',
  parameters: ['service'],
  schema: viewSchema('ServiceRules', [
    field('mode', 2, text, false),
    field('note', 3, text, false),
    field('rules', 4, listOf(rule), false),
    field('isStopped', 5, { type: 'boolean' }, false),
  ]),
  columns: [
    nameColumn,
    { name: 'Mode', type: 'string', value: ({ mode = '' }: NodeServiceRules) => mode },
    { name: 'Rules', type: 'integer', value: ({ rules = [] }: NodeServiceRules) => rules.length },
    errorColumn,
  ],
  texts: bareMap({
    '': 'ServiceRules is how the service proxy of a node carries one Service. It has the name of the node.',
    mode: 'The proxy mode. Absent: no proxy runs on the node.',
    isStopped: 'The node should have a proxy, and it does not run.',
    note: 'Why rules are not shown.',
    rules: 'The rules of the Service, in the order in which a packet meets them.',
    error: errorText,
  }),
  parts: [
    {
      schema: rule,
      texts: bareMap({
        '': 'ServiceRule is one rule of the node.',
        place: 'The chain, or the map and the key in it.',
        lines: 'The rule as the kernel has it. Absent: the proxy wants the rule, and the kernel does not have it.',
        connections: 'New connections that took the rule, where the mode counts them.',
      }),
    },
  ],
  compute: withNote(async (view, query) => {
    const service = query.get('service')
    // A table of all nodes shows the modes.
    if (service === null) return { note: 'name a Service: ?service=NAMESPACE/NAME' }
    return (await view.context()?.nodeNetwork?.serviceRules?.(service)) ?? { note: networkNote(view, 'no service proxy') }
  }),
}
