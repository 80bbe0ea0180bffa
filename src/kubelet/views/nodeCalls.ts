/** The view `nodecalls` (L3): the last calls of the kubelet to the container runtime and to CSI drivers, and of the runtime to CNI plugins: all, or those for a pod or a volume. */
import type { NodeCalls } from '#api/debug/nodeCalls'
import { bareMap } from '#base/bareMap'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, struct, text, viewSchema, withNote } from './nodeView.ts'

const call = struct('NodeCall', [
  field('api', 1, { ...text, enum: ['CRI', 'CSI', 'CNI'] }),
  field('method', 2, text),
  field('time', 3, text),
  field('milliseconds', 4, { type: 'integer', format: 'int64' }, false),
  field('code', 5, text, false),
  field('pod', 6, text, false),
  field('volume', 7, text, false),
  field('request', 8, text),
  field('answer', 9, text, false),
])

export const nodeCallsView: NodeView = {
  resource: 'nodecalls',
  kind: 'NodeCalls',
  parameters: ['pod', 'volume'],
  schema: viewSchema('NodeCalls', [field('note', 2, text, false), field('calls', 3, listOf(call), false)]),
  columns: [nameColumn, { name: 'Calls', type: 'integer', value: ({ calls = [] }: NodeCalls) => calls.length }, errorColumn],
  texts: bareMap({
    '': 'NodeCalls is the last calls of a kubelet to the container runtime and to CSI drivers, and of the runtime to CNI plugins. It has the name of the node.',
    note: 'Why no calls are shown.',
    calls: 'The calls, the oldest first.',
    error: errorText,
  }),
  parts: [
    {
      schema: call,
      texts: bareMap({
        '': 'NodeCall is one call of the kubelet, or of the container runtime.',
        method: 'The method; for CNI the command and the plugin.',
        code: 'OK, the gRPC code, or FAILED of a CNI plugin. Absent: there is no answer yet.',
        pod: 'NAMESPACE/NAME of the pod that the call is for.',
        volume: 'The volume as its CSI driver calls it.',
        request: 'The arguments as JSON, shortened where they are long, without secrets.',
        answer: 'The answer as JSON, or the message of the failure.',
      }),
    },
  ],
  compute: withNote((view, query) => {
    const calls = view.context()?.calls
    if (!calls) return { note: 'a simulated node calls no container runtime, CSI driver or CNI plugin' }
    const wanted = { pod: query.get('pod') ?? undefined, volume: query.get('volume') ?? undefined }
    const names = new Map(view.pods().map(({ metadata }) => [metadata.uid ?? '', `${metadata.namespace}/${metadata.name}`]))
    return { calls: calls.find(wanted, (uid) => names.get(uid)) }
  }),
}
