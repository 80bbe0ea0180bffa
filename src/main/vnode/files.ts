/** The two files that a node of a local cluster starts from (L5): the script that is its process 1, and its containerd's configuration. */

/** Where everything lives inside a node: the standard paths, as on any Debian host with containerd. */
export const nodePaths = {
  containerdSocket: '/run/containerd/containerd.sock',
  containerdRoot: '/var/lib/containerd',
  kubelet: '/var/lib/kubelet',
  podLogs: '/var/log/pods',
  cniConfig: '/etc/cni/net.d',
  /** Upstream's place, where installers of network plugins put theirs. Those of the host's package are seen through it. */
  cniPlugins: '/opt/cni/bin',
  packagedCniPlugins: '/usr/lib/cni',
  /** What Skiff's own plugins know, in a node's own layer, as other plugins have it. */
  cniState: '/var/lib/cni/skiff',
  /** Notes of calls to CNI plugins, until the agent has read them. */
  cniCalls: '/run/skiff-cni-calls',
} as const

/**
 * Host ports answer on the node's own 127.0.0.1 only while the kernel routes such addresses. Then it would take them from a pod or a neighbor too, which
 * would reach what listens for the node alone (CVE-2020-8558). Upstream: kubelet/kubelet_network_linux.go, KUBE-FIREWALL.
 */
export const loopbackRules = `table ip skiff-loopback {
  chain prerouting {
    type filter hook prerouting priority -310; policy accept;
    iifname != "lo" ip daddr 127.0.0.0/8 drop
    iifname != "lo" ip saddr 127.0.0.0/8 drop
  }
}
`

/** The name under which the pause image is kept in each node's containerd. */
export const pauseImage = 'skiff.internal/pause:1'

/**
 * Process 1 of a node: makes the node's view of the file system, then keeps containerd running. /etc, /opt and /var are layers over the host's, so
 * that the standard paths exist without a trace on the host; containerd's own data cannot lie on a layer and is bound from the node's folder.
 * @param dir the node's folder on the host.
 */
export function initScript(dir: string, hostname: string, resolvConf: string): string {
  return `#!/bin/sh
set -e
umask 022
exec </dev/null >>${quote(`${dir}/init.log`)} 2>&1
mount --make-rslave /
mkdir -p /dev/shm
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -p /mnt/node /mnt/cgroup
mount --bind ${quote(dir)} /mnt/node
mount --rbind /sys/fs/cgroup /mnt/cgroup
for d in etc opt var; do
  mkdir -p /mnt/node/layers/$d /mnt/node/layers/$d.work
  mount -t overlay overlay -o lowerdir=/$d,upperdir=/mnt/node/layers/$d,workdir=/mnt/node/layers/$d.work /$d
done
mkdir -p ${nodePaths.cniPlugins} /mnt/node/layers/cni /mnt/node/layers/cni.work
plugins=${nodePaths.cniPlugins}
[ ! -d ${nodePaths.packagedCniPlugins} ] || plugins=$plugins:${nodePaths.packagedCniPlugins}
mount -t overlay overlay -o lowerdir=$plugins,upperdir=/mnt/node/layers/cni,workdir=/mnt/node/layers/cni.work ${nodePaths.cniPlugins}
mkdir -p /mnt/node/containerd /mnt/node/kubelet /mnt/node/logs
for pair in containerd:/var/lib/containerd kubelet:/var/lib/kubelet logs:/var/log/pods; do
  target=\${pair#*:}
  mkdir -p "$target"
  mount --bind "/mnt/node/\${pair%%:*}" "$target"
done
mkdir -p /etc/cni/net.d /var/lib/cni /var/log/containers
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t sysfs sysfs /sys
# Where the kernel has AppArmor, containerd looks there for it and for the profiles.
[ ! -d /sys/kernel/security ] || mount -t securityfs securityfs /sys/kernel/security || true
mount --rbind /mnt/cgroup /sys/fs/cgroup
umount -l /mnt/cgroup
mkdir -p /run/containerd /run/netns
rm -f /etc/resolv.conf
cat >/etc/resolv.conf <<'END'
${resolvConf}
END
printf '127.0.0.1 localhost\\n::1 localhost\\n127.0.1.1 %s\\n' ${quote(hostname)} >/etc/hosts
echo ${quote(hostname)} >/proc/sys/kernel/hostname
echo 1 >/proc/sys/net/ipv4/ip_forward
nft -f - <<'END'
${loopbackRules}END
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
[ ! -e /proc/sys/net/ipv6/conf/all/forwarding ] || echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
for f in /proc/sys/net/ipv6/conf/*/accept_ra; do [ ! -e "$f" ] || echo 0 >"$f"; done
mount --make-rshared /
while :; do
  containerd -c /mnt/node/containerd.toml >>/mnt/node/containerd.log 2>&1 &
  echo $! >/run/containerd.pid
  wait $! || true
  sleep 0.3
done
`
}

/**
 * containerd 1.6's configuration for one node.
 * @param lowersOomScores whether a process of the node may lower a score: a host without CAP_SYS_RESOURCE cannot, and runc would fail every pod whose score is below containerd's
 */
export function containerdConfig(lowersOomScores: boolean): string {
  return `version = 2
root = "${nodePaths.containerdRoot}"
state = "/run/containerd"
oom_score = ${lowersOomScores ? -999 : 0}
[grpc]
  address = "${nodePaths.containerdSocket}"
[ttrpc]
  address = "${nodePaths.containerdSocket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "${nodePaths.containerdRoot}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = ${!lowersOomScores}
  sandbox_image = "${pauseImage}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${nodePaths.cniPlugins}"
    conf_dir = "${nodePaths.cniConfig}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
