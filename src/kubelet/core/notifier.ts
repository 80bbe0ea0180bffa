/**
 * Connects a part of the kubelet to a later one that needs the part itself (L3): the notifier is created first, the earlier part calls notify, the later one
 * subscribes when it is created.
 */
export interface Notifier<T = void> {
  notify(value: T): void
  subscribe(listener: (value: T) => void): void
}

export function createNotifier<T = void>(): Notifier<T> {
  const listeners: ((value: T) => void)[] = []
  return {
    notify: (value) => {
      for (const listener of listeners) listener(value)
    },
    subscribe: (listener) => void listeners.push(listener),
  }
}
