/** What the tests of webhooks ask them about (L3): the creation of a node. */
import type { AdmissionAttributes } from '../admission.ts'

export const nodeKind = { group: '', version: 'v1', kind: 'Node', resource: 'nodes' }

export const nodeCreation: AdmissionAttributes = {
  operation: 'CREATE',
  resource: nodeKind,
  kind: nodeKind,
  subresource: '',
  namespace: '',
  name: 'n',
  user: { name: 'me', groups: [] },
  dryRun: false,
  warn: () => undefined,
}
