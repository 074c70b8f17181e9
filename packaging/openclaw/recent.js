/** A map that forgets the oldest. */
export class Recent extends Map {
  #most;

  constructor(most = 10_000) {
    super();
    this.#most = most;
  }

  set(key, value) {
    this.delete(key);
    if (this.size >= this.#most) this.delete(this.keys().next().value);
    return super.set(key, value);
  }
}
