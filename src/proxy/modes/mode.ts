/** What a proxy mode is (L3): one file in this folder, one line in index.ts. */
import type { ServiceRuleText } from '#api/debug/nodeNetwork'
import type { Exec } from '#host/exec'
import type { ApplyDeps } from '../applyModels.ts'
import type { Family, FamilyModel, ProxyModels } from '../model.ts'

export interface ProxyModeDeps extends ApplyDeps {
  readonly exec: Exec
  /** Those of the models: their metrics are there before the first failure. */
  readonly families?: readonly Family[] | undefined
}

export interface ProxyMode {
  readonly name: string
  /** Why this host cannot run the mode for addresses of the family; undefined when it can. */
  obstacle(exec: Exec, family: Family): Promise<string | undefined>
  /** Makes the settings of the host that the mode needs. run() makes them, too. Absent: there are none. */
  prepare?: ((deps: Pick<ProxyModeDeps, 'exec' | 'log'>) => Promise<void>) | undefined
  /** Keeps the host in step with the newest model until the signal aborts. The rules stay: a proxy that restarts must not cut the traffic; userspace closes its listeners. */
  run(deps: ProxyModeDeps, models: ProxyModels, signal: AbortSignal): Promise<void>
  /** The kernel's rules of the Services of a model, which are few, in the order in which a packet meets them. Absent: the mode cannot show them. */
  rulesOf?: ((exec: Exec, model: FamilyModel) => Promise<readonly ServiceRuleText[]>) | undefined
  /** Removes from the host what run() made, in this or an earlier process. Nothing to remove is fine, and so is a host that cannot run the mode. */
  cleanUp(exec: Exec): Promise<void>
}
