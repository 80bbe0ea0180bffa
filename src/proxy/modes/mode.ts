/** What a proxy mode is (L3): one file under modes/, one line in index.ts. */
import type { Exec } from '#host/exec'
import type { ServiceRule } from '../model.ts'

export interface ProxyModeContext {
  readonly exec: Exec
  /** Traffic from elsewhere to a cluster address is masqueraded; traffic between pods is not. */
  readonly clusterCidr: string
  /** Unknown ports and addresses of this range are refused. */
  readonly serviceCidr: string
}

export interface ProxyMode {
  readonly name: string
  /** Why this host cannot run the mode; undefined when it can. */
  obstacle(exec: Exec): Promise<string | undefined>
  create(context: ProxyModeContext): ProxyBackend
}

export interface ProxyBackend {
  /** Makes the kernel say what the rules say, touching only what changed. */
  apply(rules: readonly ServiceRule[]): Promise<void>
  /** Removes everything that apply made. */
  cleanUp(): Promise<void>
}
