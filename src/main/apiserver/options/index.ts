/** kube-apiserver's flags by group, in the order that --help shows (L5). How they are read is ./readOptions.ts's. */
import { admission } from './admission.ts'
import { apiEnablement } from './apiEnablement.ts'
import { audit } from './audit.ts'
import { authentication } from './authentication.ts'
import { authorization } from './authorization.ts'
import { encryption } from './encryption.ts'
import { features } from './features.ts'
import { generic } from './generic.ts'
import { logs } from './logs.ts'
import { metrics } from './metrics.ts'
import type { OptionContext } from './optionGroup.ts'
import { other } from './other.ts'
import { reach } from './reach.ts'
import { type OptionsOf, readOptions } from './readOptions.ts'
import { secureServing } from './secureServing.ts'
import { serving } from './serving.ts'
import { storage } from './storage.ts'
import { tracing } from './tracing.ts'

export const optionGroups = {
  generic,
  secureServing,
  features,
  storage,
  reach,
  encryption,
  audit,
  authentication,
  authorization,
  apiEnablement,
  admission,
  metrics,
  tracing,
  other,
} as const

/** The groups of a server that runs as a process by itself, without a cluster around it. */
export const aloneGroups = { serving, ...optionGroups, logs } as const

export type ServerOptions = OptionsOf<typeof optionGroups>

export function serverOptions(args: readonly string[], context: OptionContext): Promise<ServerOptions> {
  return readOptions(optionGroups, args, context)
}
