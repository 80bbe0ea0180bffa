/** The cluster that is made before the power cut and looked at after it. */
export const rebooted = { name: 'rebooted', directory: '/root/rebooted' }
