/** The option groups of every component that is a process of its own, but those with defaults of their own (L5). */
import { logs } from '../../apiserver/options/logs.ts'
import { metrics } from '../../apiserver/options/metrics.ts'
import { secureServing as tls } from '../../apiserver/options/secureServing.ts'
import { debugging } from './connection.ts'
import { delegatedAuthentication } from './delegatedAuthentication.ts'
import { delegatedAuthorization } from './delegatedAuthorization.ts'
import { componentFeatures } from './features.ts'

export const processGroups = {
  tls,
  authentication: delegatedAuthentication,
  authorization: delegatedAuthorization,
  debugging,
  features: componentFeatures,
  logs,
  metrics,
} as const
