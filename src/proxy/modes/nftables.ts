/**
 * Services in nftables (L3): verdict maps lead from address, protocol and port to a chain per service port, that one to a chain per endpoint.
 * The table is ours alone. Names and structure follow upstream's, so that what people know about it holds. Upstream: pkg/proxy/nftables (v1.36).
 */
import { check } from '#host/exec'
import type { ProxyMode } from './mode.ts'
import { renderRules, renderTable, type TableContents } from './nftablesRules.ts'

const table = 'ip kube-proxy'

export const nftables: ProxyMode = {
  name: 'nftables',
  obstacle: async (exec) => {
    const { code, stderr } = await exec.run('nft', ['list', 'tables'])
    return code === 0 ? undefined : `nft does not work here: ${stderr.trim() || 'not installed'}`
  },
  create: ({ exec, clusterCidr, serviceCidr }) => {
    let applied: TableContents | undefined
    const load = (script: string) => check(exec, 'nft', ['-f', '-'], { input: script })
    return {
      apply: async (rules) => {
        const wanted = renderRules(rules, clusterCidr, serviceCidr)
        const script = renderTable(table, wanted, applied)
        if (!script) return
        try {
          await load(script)
        } catch (error) {
          // The kernel's table may not be what we think: the next time everything is written anew.
          applied = undefined
          throw error
        }
        applied = wanted
      },
      cleanUp: async () => {
        await load(`add table ${table}\ndelete table ${table}\n`)
        applied = undefined
      },
    }
  },
}
