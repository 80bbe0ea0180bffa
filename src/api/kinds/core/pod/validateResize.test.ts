import type { Pod } from '#api/gen/types/core.v1'
import { kindRules } from '#testing/kindRules'
import { pod } from './pod.ts'

const container = { name: 'a', image: 'i', terminationMessagePolicy: 'File', imagePullPolicy: 'Always' }
const good: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    containers: [
      { ...container, resources: { requests: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '1Gi' }, limits: { memory: '2Gi' } } },
      { ...container, name: 'b' },
    ],
    initContainers: [
      { ...container, name: 'step', resources: { requests: { cpu: '1' } } },
      { ...container, name: 'sidecar', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } },
    ],
  },
  status: { qosClass: 'Burstable' },
}
const cpu = 'spec.containers.0.resources.requests.cpu'
const mirror = { 'metadata.annotations': { 'kubernetes.io/config.mirror': 'x' } }
const restarting = { 'spec.initContainers.0.resizePolicy': [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] }
const onlyCpuAndMemory = 'spec: Forbidden: only cpu and memory resources are mutable'

kindRules('KUB-22', pod, good).subresource('resize', [
  ['more cpu and less memory', { [cpu]: '2', 'spec.containers.0.resources.limits.memory': '1Gi' }, []],
  ['what a container did not ask for before', { 'spec.containers.1.resources': { requests: { cpu: '1' } } }, []],
  ['an init container and a sidecar', { 'spec.initContainers.0.resources.requests.cpu': '2', 'spec.initContainers.1.resources.requests.cpu': '2' }, []],
  ['an image is left as it was', { 'spec.containers.0.image': 'other' }, []],
  ['labels are left as they were', { 'metadata.labels': { a: '-not-valid-' } }, []],
  ['a static pod', { [cpu]: '2' }, [': Forbidden: static pods cannot be resized'], mirror],
  ['a pod of Windows', { [cpu]: '2' }, [': Forbidden: windows pods cannot be resized'], { 'spec.os': { name: 'windows' } }],
  [
    'another quality of service',
    { 'spec.containers.1.resources': { requests: { cpu: '1' } } },
    ['spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'],
    { 'spec.containers.0.resources': {}, 'spec.initContainers': [], 'status.qosClass': 'BestEffort' },
  ],
  [
    'a change of the QoS class that no status states yet',
    { 'spec.containers.1.resources': { requests: { cpu: '1' } } },
    ['spec: Invalid value: "": Pod QOS Class may not change as a result of resizing'],
    { 'spec.containers.0.resources': {}, 'spec.initContainers': [], 'status.qosClass': undefined },
  ],
  [
    'a node that tells no resources',
    { [cpu]: '2' },
    ['spec: Forbidden: Pod running on node without support for resize'],
    {
      'status.containerStatuses': [
        { name: 'a', image: 'i', imageID: '', ready: true, restartCount: 0, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } },
      ],
    },
  ],
  [
    'requests and limits taken away',
    { [cpu]: undefined, 'spec.containers.0.resources.limits.memory': undefined, 'spec.initContainers.0.resources': {} },
    [
      'spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed',
      'spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed',
      'spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed',
    ],
  ],
  ['more of another resource', { 'spec.containers.0.resources.requests.ephemeral-storage': '2Gi' }, [onlyCpuAndMemory]],
  ['another policy', { 'spec.containers.0.resizePolicy': [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }] }, [onlyCpuAndMemory]],
  [
    'more of another resource of a sidecar',
    { 'spec.initContainers.1.resources.requests.ephemeral-storage': '2Gi' },
    ['spec.initContainers[1]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable'],
  ],
  [
    'an init container that would have to restart',
    { 'spec.initContainers.0.resources.requests.cpu': '2' },
    ['spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized'],
    restarting,
  ],
  ['a pod with an init container that would have to restart', { [cpu]: '2' }, [], restarting],
  [
    'renamed containers',
    { 'spec.containers.0.name': 'x', 'spec.initContainers.1.name': 'y' },
    [
      'spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize',
      'spec.initContainers[1].name: Forbidden: initContainers may not be renamed or reordered on resize',
    ],
  ],
  ['one container less', { 'spec.containers': [good.spec.containers[0]] }, ['spec.containers: Forbidden: containers may not be added or removed on resize']],
])

const whole = { 'spec.resources': { requests: { cpu: '8', memory: '8Gi' } } }
kindRules('KUB-22', pod, good).subresource('resize', [
  ['the pod as a whole', { 'spec.resources.requests.cpu': '9' }, [], whole],
  ['a pod that said nothing as a whole', whole, []],
  ['nothing as a whole any more', { 'spec.resources': undefined }, ['spec.resources: Forbidden: pod-level resources cannot be removed'], whole],
  [
    'less as a whole',
    { 'spec.resources': { requests: { cpu: '8' } } },
    ['spec.resources.requests: Forbidden: pod-level resource requests cannot be removed'],
    whole,
  ],
  [
    'huge pages as a whole',
    { 'spec.resources.requests.hugepages-2Mi': '2Mi', 'spec.resources.limits': { 'hugepages-2Mi': '2Mi' } },
    ['spec: Forbidden: only cpu and memory resources are mutable at pod-level'],
    whole,
  ],
])
