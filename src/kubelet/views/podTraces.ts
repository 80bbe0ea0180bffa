/**
 * The view `podtraces` (L3): what the kubelet did about one pod, and the calls of its runtime, with their times. Parameter: `pod` (NAMESPACE/NAME). The agent of a
 * real node keeps the newest of all its pods; a simulated node notes only pods that a reader of the server's traces follows.
 */
import { type ObjectEvent, objectKey } from '#api/debug/traces'
import type { Schema } from '#api/schema/schema'
import { bareMap } from '#base/bareMap'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, struct, text, viewSchema } from './nodeView.ts'

const double: Schema = { type: 'number', format: 'double' }

const event = struct('PodTraceEvent', [
  field('component', 1, text),
  field('what', 2, text),
  field('object', 3, text),
  field('node', 4, text, false),
  field('atMs', 5, double),
  field('durationMs', 6, double),
  field('result', 7, text),
])

interface PodTraces {
  readonly note?: string
  readonly events?: readonly ObjectEvent[] | undefined
}

const most = 500
const podName = /^[^/]{1,63}\/[^/]{1,253}$/

export const podTracesView: NodeView = {
  resource: 'podtraces',
  kind: 'PodTraces',
  parameters: ['pod'],
  schema: viewSchema('PodTraces', [field('events', 2, listOf(event), false), field('note', 3, text, false)]),
  columns: [nameColumn, { name: 'Events', type: 'integer', value: ({ events = [] }: PodTraces) => events.length }, errorColumn],
  texts: bareMap({
    '': 'PodTraces is what the kubelet of a node did about a pod. It has the name of the node.',
    events: 'The steps of the kubelet and the calls of its runtime, by time.',
    note: 'Why no steps are shown.',
    error: errorText,
  }),
  parts: [
    {
      schema: event,
      texts: bareMap({
        '': 'PodTraceEvent is one step of the kubelet, or one call of its runtime.',
        component: 'kubelet or runtime.',
        what: 'The step, or the call.',
        object: 'The pod, as pods/NAMESPACE/NAME.',
        node: 'The node.',
        atMs: 'When it began, in milliseconds since 1970.',
        durationMs: 'How many milliseconds it took.',
        result: 'How it ended.',
      }),
    },
  ],
  compute: (view, query) => {
    const pod = query.get('pod') ?? ''
    if (!podName.test(pod)) return { note: 'name a pod: ?pod=NAMESPACE/NAME' }
    const [namespace = '', name = ''] = pod.split('/')
    return { events: view.podTrace(objectKey('pods', namespace, name)).slice(-most) }
  },
}
