package ledgertest

func testModel(w *world) {}
