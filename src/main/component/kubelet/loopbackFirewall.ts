/**
 * Drops packets from other machines to loopback addresses of this one (L5), which route_localnet, as node ports on localhost need it, would let in
 * (CVE-2020-8558). The rules lie in a table of their own, are written again each minute in case they were flushed, and end with the kubelet.
 * Upstream: pkg/kubelet/kubelet_network_linux.go (v1.36), the chain KUBE-FIREWALL, unless makeIPTablesUtilChains is false.
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { check, type Exec } from '#host/exec'

const table = 'ip skiff-kubelet'
const againMs = 60_000

/** One transaction: the table is never missing while it is replaced. */
const rules = `table ${table} {}
delete table ${table}
table ${table} {
  chain firewall {
    ip daddr != 127.0.0.0/8 accept
    ip saddr 127.0.0.0/8 accept
    ct state established,related accept
    ct status dnat accept
    drop
  }
  chain input { type filter hook input priority filter; policy accept; jump firewall; }
  chain output { type filter hook output priority filter; policy accept; jump firewall; }
}
`

export function createLoopbackFirewall({ exec, clock, log }: { readonly exec: Exec; readonly clock: Clock; readonly log: Logger }): Component {
  let isTold = false
  const install = async (): Promise<void> => {
    try {
      await check(exec, 'nft', ['-f', '-'], { input: rules })
    } catch (error) {
      // As upstream, a machine without such rules still runs pods.
      if (!isTold) log.error(error, 'The rules that protect loopback addresses could not be installed')
      isTold = true
    }
  }
  return {
    name: 'loopback-firewall',
    async run(signal) {
      while (!signal.aborted) {
        await install()
        await clock.sleep(againMs, signal).catch(() => undefined)
      }
      await exec.run('nft', ['delete', 'table', ...table.split(' ')])
    },
  }
}
