module @control attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}", tf.aliasing_output = 0 : i32}, %n: tensor<i32> {mhlo.sharding = "{replicated}"}, %w: tensor<8xf32>) -> (tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}, tensor<8xf32> {mhlo.sharding = "{replicated}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8xf32> attributes {mhlo.frontend_attributes = {note = "a loop"}}
    cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %u = func.call @scaled(%v, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<8xf32>
    }
    %case = "stablehlo.case"(%n) ({
      stablehlo.return %x : tensor<8xf32>
    }, {
      %neg = stablehlo.negate %w : tensor<8xf32>
      stablehlo.return %neg : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    %p = stablehlo.compare GT, %n, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %if = "stablehlo.if"(%p) ({
      stablehlo.return %case : tensor<8xf32>
    }, {
      stablehlo.return %w : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    %k:2 = stablehlo.optimization_barrier %r#1, %if : tensor<8xf32>, tensor<8xf32>
    %k1 = stablehlo.optimization_barrier %k#1 : tensor<8xf32>
    return %k#0, %k1 : tensor<8xf32>, tensor<8xf32>
  }
  func.func private @scaled(%v: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
    %s = stablehlo.multiply %v, %w : tensor<8xf32>
    %c = stablehlo.custom_call @Sharding(%s) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<8xf32>) -> tensor<8xf32>
    return %c : tensor<8xf32>
  }
}
