import type { RuntimeClass } from '#api/gen/types/node.v1'
import { kindRules } from '#testing/kindRules'
import { runtimeClass } from './runtimeClass.ts'

const good: RuntimeClass = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'gvisor' }, handler: 'runsc' }
const onClass = kindRules('EXP-04', runtimeClass, good)
onClass.create([
  ['a good one', { 'overhead.podFixed': { cpu: '250m', memory: '64Mi' } }, []],
  ['no handler', { handler: '' }, ['handler: Required value']],
  ['a negative overhead', { 'overhead.podFixed': { cpu: '-1' } }, ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0']],
  [
    'an overhead of nothing known',
    { 'overhead.podFixed': { bananas: '1' } },
    [
      'overhead.limits[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified',
      'overhead.limits[bananas]: Invalid value: "bananas": must be a standard resource for containers',
    ],
  ],
])
onClass.update([['another handler', { handler: 'kata' }, ['handler: Invalid value: "kata": field is immutable']]])
onClass.cells('its handler', {}, { Name: 'gvisor', Handler: 'runsc' })
onClass.warnings('an old label', { 'scheduling.nodeSelector': { 'beta.kubernetes.io/os': 'linux' } }, [
  'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead',
])
