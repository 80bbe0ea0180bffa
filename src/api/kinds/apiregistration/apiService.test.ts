import type { APIService } from '#api/gen/types/apiregistration.v1'
import { kindRules } from '#testing/kindRules'
import { apiService } from './apiService.ts'

const good: APIService = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: 'v1.metrics.example.com' },
  spec: { group: 'metrics.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 10, service: { namespace: 'd', name: 's' } },
  status: {},
}
const onService = kindRules('EXP-04', apiService, good)
onService.defaults('the port', {}, { 'spec.service.port': 443 })
onService.create([
  ['a good one', {}, []],
  ['another name', { 'metadata.name': 'v2.x.y' }, ['metadata.name: Invalid value: "v2.x.y": must be `spec.version+"."+spec.group`: "v1.metrics.example.com"']],
  [
    'the core group in another version',
    { 'metadata.name': 'v2.', 'spec.group': '', 'spec.version': 'v2' },
    ['spec.group: Required value: only v1 may have an empty group and it better be legacy kube'],
  ],
  [
    'priorities out of range',
    { 'spec.groupPriorityMinimum': 20_001, 'spec.versionPriority': 0 },
    [
      'spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000',
      'spec.versionPriority: Invalid value: 0: must be positive and less than 1000',
    ],
  ],
  [
    'a port that is none',
    { 'spec.service.port': 70_000 },
    ['spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive'],
  ],
  ['no service name', { 'spec.service.name': '' }, ['spec.service.name: Required value']],
  [
    'insecureSkipTLSVerify together with a CA bundle',
    { 'spec.insecureSkipTLSVerify': true, 'spec.caBundle': 'YWJj' },
    ['spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present'],
  ],
  [
    'a local one with a bundle',
    { 'spec.service': undefined, 'spec.caBundle': 'YWJjZA==', 'spec.insecureSkipTLSVerify': true },
    [
      'spec.caBundle: Invalid value: "4 bytes": local APIServices may not have a caBundle',
      'spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify',
    ],
  ],
])
onService.subresource('status', [
  ['a known status', { 'status.conditions': [{ type: 'Available', status: 'Unknown' }] }, []],
  [
    'an unknown status',
    { 'status.conditions': [{ type: 'Available', status: 'Maybe' }] },
    ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"'],
  ],
])
onService.cells(
  'one whose service is away',
  { 'status.conditions': [{ type: 'Available', status: 'False', reason: 'ServiceNotFound' }] },
  {
    Name: 'v1.metrics.example.com',
    Service: 'd/s',
    Available: 'False (ServiceNotFound)',
  },
)
onService.cells('a local one', { 'spec.service': undefined }, { Name: 'v1.metrics.example.com', Service: 'Local', Available: 'Unknown' })
