/** Kubeconfigs of webhooks (L5): files that flags or configuration files name, with the files that they name themselves. */
import path from 'node:path'
import { parseYaml } from '#api/machinery/yaml'
import type { Clock } from '#base/clock'
import type { HttpTransportOptions } from '#client/httpTransport'
import { type Kubeconfig, type KubeconfigDeps, resolveKubeconfig } from '#client/kubeconfig'
import { plugins } from '../../credentialPlugins.ts'
import { createRealClock } from '../../realClock.ts'
import { UsageError } from './flags.ts'
import { readNamed } from './namedFiles.ts'
import type { OptionContext } from './optionGroup.ts'

/** Undefined: no file is named. @throws UsageError for a kubeconfig that leads nowhere */
export async function kubeconfigTransport(
  file: string,
  context: OptionContext,
  clock: Clock = createRealClock(),
): Promise<Omit<HttpTransportOptions, 'clock'> | undefined> {
  return readKubeconfig(file, context, clock, async (config, deps) => (await resolveKubeconfig(config, deps)).transport)
}

/** What `use` makes of a kubeconfig; undefined: no file is named. @throws UsageError with what `use` threw, after `about` */
export async function readKubeconfig<T>(
  file: string,
  context: OptionContext,
  clock: Clock,
  use: (config: Kubeconfig, deps: KubeconfigDeps) => Promise<T>,
  about = file,
): Promise<T | undefined> {
  const content = await readNamed(file, context)
  if (content === undefined) return undefined
  const readFile = async (name: string) => Buffer.from((await readNamed(path.resolve(path.dirname(file), name), context)) ?? '')
  try {
    return await use(Object(parseYaml(content)) as Kubeconfig, { clock, readFile, plugins })
  } catch (error) {
    throw new UsageError([`${about}: ${(error as Error).message}`])
  }
}
