// The annotation of generated code, which the JDK no longer contains.
package javax.annotation;

public @interface Generated {
    String[] value();

    String comments() default "";
}
