/** Where the kubelet keeps what belongs to a pod (L3). Upstream: kubelet_getters.go (v1.36). */
export const podDirectory = (rootDirectory: string, uid: string): string => `${rootDirectory}/pods/${uid}`

/** The file that all containers of the pod see as /etc/hosts. */
export const hostsPath = (rootDirectory: string, uid: string): string => `${podDirectory(rootDirectory, uid)}/etc-hosts`
