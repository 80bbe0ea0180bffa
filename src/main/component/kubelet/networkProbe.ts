/**
 * Probes from the network namespace of a pod (L5): a short-lived process of this program enters the namespace, since Node cannot do so by itself, resolves the
 * names, opens the connections and ends. It has the rights, cgroup and files of the agent, so that nothing of a pod's is read or run.
 */
import type { NetworkProbe, NetworkProbeResults } from '#api/debug/nodeNetwork'
import { check, type Exec } from '#host/exec'

/** The word that makes this program the process of a probe. */
export const probeRole = 'network-probe'

/** The API server waits five seconds for a view. */
const wholeMs = 4000
const maxOutputBytes = 256 * 1024
const maxAtOnce = 4

/** @param self words that run this program */
export function networkProbes(exec: Exec, self: readonly string[]): (probe: NetworkProbe) => Promise<NetworkProbeResults> {
  let running = 0
  return async ({ namespacePath, ...probe }) => {
    if (running >= maxAtOnce) throw new Error(`the node makes ${maxAtOnce} probes already: try again later`)
    running++
    try {
      const enter = namespacePath === undefined ? [] : ['nsenter', `--net=${namespacePath}`, '--']
      const [command = '', ...args] = [...enter, ...self, probeRole]
      return JSON.parse(await check(exec, command, args, { input: JSON.stringify(probe), timeoutMs: wholeMs, maxOutputBytes })) as NetworkProbeResults
    } finally {
      running--
    }
  }
}
